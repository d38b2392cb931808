/** docs/dependencies.md says of each package that we chose where it comes from. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';

const root = join(__dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const names = z.record(z.string(), z.string());
const manifest = z
  .object({ dependencies: names, devDependencies: names })
  .parse(JSON.parse(read('package.json')));
const lock = z
  .object({
    packages: z.record(
      z.string(),
      z.object({ version: z.string().optional(), license: z.string().optional() }),
    ),
  })
  .parse(JSON.parse(read('package-lock.json')));

/** Of the two tables with one row for each package, by the names of their columns. */
const rows = read('docs/dependencies.md')
  .split(/^## .*$/m)
  .filter((section) => /^\| package /m.test(section))
  .flatMap((section) => {
    const [head = [], , ...cells] = section
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    return cells.map((row) => new Map(head.map((column, index) => [column, row[index] ?? ''])));
  });
const cell = (row: ReadonlyMap<string, string>, column: string): string => row.get(column) ?? '';

describe('docs/dependencies.md', () => {
  it('has every package of package.json, once, and no other', () => {
    const chosen = [manifest.dependencies, manifest.devDependencies].flatMap(Object.keys);
    expect(rows.map((row) => cell(row, 'package')).sort()).toEqual(chosen.sort());
  });

  it.each(rows.map((row) => [cell(row, 'package'), row] as const))(
    'has licence, version and reasons of %s',
    (name, row) => {
      const { license, version = '' } = lock.packages[`node_modules/${name}`] ?? {};
      expect(cell(row, 'licence')).toBe(license);
      const keeper = cell(row, 'who keeps it; the release that is used');
      if (!keeper.startsWith('as ')) expect(keeper).toContain(`${version} `);
      for (const column of ['for', 'why this one']) expect(cell(row, column)).not.toBe('');
    },
  );
});
