/** docs/security.md names what is there: tests by their names, rules of policies by theirs. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = join(__dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const TEMPLATES = 'helm/kube-startup-cpu-boost/templates';
const document = read('docs/security.md');

/** The cells of each row of a table with a column "shown by". */
const rows = document
  .split(/^## .*$/m)
  .filter((section) => section.includes('| shown by'))
  .flatMap((section) => section.split('\n').filter((line) => line.startsWith('|')))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => !cells.includes('shown by') && !cells.every((cell) => /^-*$/.test(cell)));

/** The last cell of each row, where each piece of evidence stands after a semicolon. */
const evidence = rows.flatMap((cells) => (cells.at(-2) ?? '').split(/; (?=test\/|policies\/|\[)/));

const named = (prefix: string): readonly [file: string, name: string][] =>
  evidence
    .filter((each) => each.startsWith(prefix))
    .map((each) => {
      const [file = '', name = ''] = each.split(' › ');
      return [file, name];
    });

/** The rules of a policy, by what their messages begin with. */
function rulesOf(file: string): readonly string[] {
  return [...read(join(TEMPLATES, file)).matchAll(/^ {8}(\w+): Startup CPU Boost may/gm)].map(
    ([, rule = '']) => rule,
  );
}

describe('docs/security.md', () => {
  it('shows each line by a test, a rule of a policy or the rights', () => {
    expect(rows.length).toBeGreaterThan(30);
    const without = evidence.filter((each) => !/^(test\/|policies\/\S+ › |\[)/.test(each));
    expect(without).toEqual([]);
  });

  it.each(named('test/'))('names a test that is there: %s › %s', (file, name) => {
    expect(existsSync(join(root, file))).toBe(true);
    const titles = ["'", '"', '`'].map((quote) => `${quote}${name}${quote},`);
    if (name !== '') expect(titles.filter((title) => read(file).includes(title))).toHaveLength(1);
  });

  it.each(named('policies/'))('names a rule that is there: %s › %s', (file, name) => {
    expect(rulesOf(file)).toContain(name);
  });

  it('names every rule of every policy', () => {
    const files = readdirSync(join(root, TEMPLATES, 'policies'))
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => `policies/${name}`);
    const all = files.flatMap((file) => rulesOf(file).map((rule) => `${file} › ${rule}`));
    expect(all.length).toBeGreaterThan(10);
    expect([...new Set(named('policies/').map((each) => each.join(' › ')))].sort()).toEqual(
      all.sort(),
    );
  });
});
