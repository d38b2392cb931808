/** node scripts/run.mjs TASK: everything a developer does here but tests and demo; alone it lists the tasks. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildAll, bundle } from './build.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { Failure, main, must, root, run, say } from './lib/processes.mjs';
import { verifySupplyChain } from './lib/supplyChain.mjs';

const generatedPaths = [
  'crds',
  'docs/api.md',
  'docs/reasons.md',
  'helm/kube-startup-cpu-boost/README.md',
];

const tasks = {
  lint: ['ESLint, Prettier and the layers of src/', lint],
  typecheck: ['TypeScript, without writing anything', typecheck],
  format: ['Prettier, writing', () => tool('prettier', ['--write', '.'])],
  generate: [
    "crds/, docs/api.md, docs/reasons.md and the table in the chart's README from their sources",
    generate,
  ],
  build: ['dist/: the bundle and the library', buildAll],
  verify: [
    'lint, typecheck, generated files up to date, dependencies as listed, packed library works',
    verify,
  ],
};

async function lint() {
  await tool('eslint', ['.']);
  await tool('prettier', ['--check', '.']);
  await tool('dependency-cruiser', ['src', '--config', '.dependency-cruiser.cjs'], 'depcruise');
}

async function typecheck() {
  await tool('typescript', ['-p', '.'], 'tsc');
}

async function generate() {
  await inTemporaryFolder(async (folder) => {
    for (const source of ['src/resources/generate.ts', 'scripts/chart.ts']) {
      const generator = join(folder, 'generate.cjs');
      await bundle(source, generator);
      await must(process.execPath, [generator]);
    }
  });
}

async function verify() {
  await step('lint', lint);
  await step('typecheck', typecheck);
  await step('generated files', verifyGenerated);
  await step('dependencies', verifySupplyChain);
  await step('packed library', verifyPackage);
}

async function step(name, work) {
  say(`--- ${name}`);
  await work();
}

/** Compares contents, not commits: it holds in a tree with uncommitted work as well. */
async function verifyGenerated() {
  const before = generatedFiles();
  await generate();
  const after = generatedFiles();
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  if (changed.length === 0) return;
  throw new Failure(
    `${changed.join(', ')} did not match the source and has been written again: look at it and commit it`,
  );
}

function generatedFiles() {
  const files = new Map();
  for (const path of generatedPaths.flatMap(filesUnder)) {
    files.set(path, readFileSync(join(root, path), 'utf8'));
  }
  return files;
}

function filesUnder(path) {
  try {
    return readdirSync(join(root, path)).map((name) => `${path}/${name}`);
  } catch (error) {
    if (error.code === 'ENOTDIR') return [path];
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

/** What somebody gets who installs the package: re2js beside it, and an engine that loads. */
async function verifyPackage() {
  await inTemporaryFolder(async (folder) => {
    await must('npm', ['pack', '--silent', '--pack-destination', folder], { capture: true });
    const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'));
    const project = join(folder, 'project');
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), '{"name": "project", "private": true}');
    await install(project, join('..', tarball));

    const listed = await must('npm', ['ls', '--all', '--json'], { capture: true, cwd: project });
    const packages = namesIn(JSON.parse(listed)).sort();
    if (packages.join(' ') !== 'kube-startup-cpu-boost re2js') {
      throw new Failure(`the package should bring re2js alone, and brings: ${packages.join(', ')}`);
    }

    const engine = 'kube-startup-cpu-boost/boost-engine';
    const use = `const issue = compileBoost({}).kind;
if (issue !== 'Invalid' || typeof decideBoost !== 'function') throw new Error('no engine');`;
    const names = '{ compileBoost, decideBoost }';
    const programs = {
      'required.cjs': `const ${names} = require('${engine}');\n${use}\n`,
      'imported.mjs': `import ${names} from '${engine}';\n${use}\n`,
      'typed.mts': `import ${names} from '${engine}';\n${use}\n`,
    };
    for (const [name, text] of Object.entries(programs)) writeFileSync(join(project, name), text);
    await must(process.execPath, ['required.cjs'], { cwd: project });
    await must(process.execPath, ['imported.mjs'], { cwd: project });
    const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023'];
    await tool('typescript', [...strict, 'typed.mts'], 'tsc', { cwd: project });
    say(`${tarball}: require, import and types work; dependencies: re2js`);
  });
}

/** From npm's cache where it is warm, so that this works without a network. */
async function install(project, tarball) {
  const args = ['install', '--no-audit', '--no-fund', '--silent', tarball];
  const { code } = await run('npm', [...args, '--offline'], { capture: true, cwd: project });
  if (code !== 0) await must('npm', args, { capture: true, cwd: project });
}

const namesIn = ({ dependencies = {} }) =>
  Object.entries(dependencies).flatMap(([name, child]) => [name, ...namesIn(child)]);

/** Runs a program of a dependency with this very Node. */
async function tool(name, args, program = name, options = {}) {
  const folder = join(root, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const path = join(folder, typeof bin === 'string' ? bin : bin[program]);
  const { code } = await run(process.execPath, [path, ...args], options);
  if (code !== 0) throw new Failure(`${program} ended with ${code}`);
}

async function inTemporaryFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), 'startup-cpu-boost-'));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function usage() {
  say('usage: node scripts/run.mjs TASK');
  for (const [name, [description]] of Object.entries(tasks)) {
    say(`  ${name.padEnd(10)} ${description}`);
  }
}

await main(async () => {
  const [name, ...rest] = process.argv.slice(2);
  if (name === undefined || !Object.hasOwn(tasks, name) || rest.length > 0) {
    if (name !== undefined) say(`no task "${process.argv.slice(2).join(' ')}"`);
    usage();
    return 2;
  }
  await ensureDependencies();
  await tasks[name][1]();
  return 0;
});
