/** What the documents show is what the program does. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import * as engine from '../../../src/boost-engine';
import { VARIABLES } from '../../../src/cli/settings';
import { patched } from '../../support/patched';

const root = join(__dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const DOCUMENTS = ['.', 'docs', 'docs/adr'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);

describe('the documents', () => {
  it('README shows docs/examples/boost.yaml', () => {
    expect(read('README.md')).toContain(`\`\`\`yaml\n${read('docs/examples/boost.yaml')}\`\`\``);
  });

  it('the examples of docs/engine.md run, and give what they say', () => {
    const blocks = [...read('docs/engine.md').matchAll(/```ts example\n([\s\S]*?)```/g)];
    expect(blocks.length).toBeGreaterThan(2);
    const code = blocks.map(([, block]) => block).join('\n');
    runInNewContext(code, { ...engine, applied: patched, expect });
  });

  it('docs/settings.md has every setting and no other', () => {
    const rows = [...read('docs/settings.md').matchAll(/^\| `([A-Z_]+)`/gm)].map(
      ([, name]) => name,
    );
    expect(new Set(rows)).toEqual(new Set([...VARIABLES.admission, ...VARIABLES.controller]));
  });

  it.each(DOCUMENTS)('every link of %s leads to a file that is there', (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link]) => link);
    const missing = links.filter((link = '') => !existsSync(join(root, dirname(document), link)));
    expect(missing).toEqual([]);
  });
});
