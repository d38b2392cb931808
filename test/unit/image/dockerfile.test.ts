/** The Dockerfile, as far as it can be judged without Docker: its rules, and that its files are enough. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';

const run = promisify(execFile);

interface Instruction {
  readonly name: string;
  readonly value: string;
}

const root = process.cwd();
const instructions = instructionsOf(readFileSync('Dockerfile', 'utf8'));
const lastStage = instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'));

function instructionsOf(text: string): readonly Instruction[] {
  return text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', value = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
      return { name, value };
    });
}

function valuesOf(name: string, among: readonly Instruction[] = lastStage): readonly string[] {
  return among.filter((each) => each.name === name).map(({ value }) => value);
}

describe('the last stage of the Dockerfile', () => {
  it('runs nothing and takes its files from the stage before alone', () => {
    expect(valuesOf('RUN')).toEqual([]);
    expect(valuesOf('ADD')).toEqual([]);
    expect(valuesOf('COPY')).toEqual(['--from=build /layout/app /app']);
  });

  it('runs as a numbered user that is not root, which a kubelet can check', () => {
    expect(valuesOf('USER')).toEqual(['65532:65532']);
  });

  it('starts the program itself, so that it gets the signals of the kubelet', () => {
    expect(valuesOf('ENTRYPOINT')).toEqual([
      '["/usr/local/bin/node", "/app/startup-cpu-boost.cjs"]',
    ]);
    expect(valuesOf('CMD')).toEqual(['["--help"]']);
  });

  it('has the version of the package and of the chart', () => {
    const { version } = z
      .looseObject({ version: z.string() })
      .parse(JSON.parse(readFileSync('package.json', 'utf8')));
    expect(valuesOf('ARG')).toContain(`VERSION=${version}`);
    const chart = readFileSync('helm/kube-startup-cpu-boost/Chart.yaml', 'utf8');
    expect(chart).toMatch(new RegExp(`^appVersion: ['"]?${version}['"]?$`, 'm'));
  });
});

describe('all stages of the Dockerfile', () => {
  it('build on one image, of the Node that CI runs the tests on, too', () => {
    const images = valuesOf('FROM', instructions);
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toContain('${BASE_IMAGE}');
    const [base = ''] = valuesOf('ARG', instructions);
    const [, major] = /^BASE_IMAGE=node:(\d+)-slim$/.exec(base) ?? [];
    const newest = /^export const newestNode = '(\d+)\./m.exec(
      readFileSync('scripts/lib/newestNode.mjs', 'utf8'),
    );
    expect(major).toBe(newest?.[1]);
  });

  it('install what package-lock.json has, and let no package run a program', () => {
    expect(valuesOf('RUN', instructions)).toEqual([
      'npm ci --ignore-scripts --no-audit --no-fund',
      'node scripts/image.mjs layout /layout',
    ]);
  });
});

describe('what .dockerignore leaves of the repository', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'startup-cpu-boost-context-'));
  });

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('is enough to build the image, and has nothing that people keep to themselves', async () => {
    const lines = readFileSync('.dockerignore', 'utf8').split('\n');
    const rules = lines.filter((line) => line !== '' && !line.startsWith('#'));
    expect(rules[0]).toBe('*');
    const kept = rules.slice(1).map((rule) => rule.replace(/^!/, ''));
    expect(rules.slice(1)).toEqual(kept.map((path) => `!${path}`));
    const context = join(folder, 'src');
    for (const path of kept) cpSync(path, join(context, path), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(context, 'node_modules'));

    const layout = join(folder, 'layout');
    await run(process.execPath, ['scripts/image.mjs', 'layout', layout], { cwd: context });

    expect(readdirSync(layout)).toEqual(['app']);
    expect(readdirSync(join(layout, 'app')).sort()).toEqual([
      'LICENSE',
      'THIRD-PARTY-NOTICES.txt',
      'sbom.cdx.json',
      'startup-cpu-boost.cjs',
    ]);
    const { stdout } = await run(process.execPath, [
      join(layout, 'app', 'startup-cpu-boost.cjs'),
      '--help',
    ]);
    expect(stdout).toContain('usage: startup-cpu-boost COMMAND');
  });
});
