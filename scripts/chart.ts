/** Writes the files of the Helm chart that are derived from others: `npm run generate`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isNode, isScalar, parseDocument } from 'yaml';
import type { YAMLMap } from 'yaml';

export const CHART = 'helm/kube-startup-cpu-boost';

/** What stands between them in the chart's README is written from values.yaml. */
const BEGIN = '<!-- values: written by npm run generate from values.yaml; do not edit -->';
const END = '<!-- end of values -->';

/** How a value is described, as helm-docs has it; a comment without this is about the whole block. */
const MARK = '-- ';

export interface ChartValue {
  /** Such as `image.tag`. */
  readonly path: string;
  readonly defaultValue: unknown;
  readonly description: string;
}

/** Path from the repository's root -> content. */
export function chartFiles(root: string): ReadonlyMap<string, string> {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  const readme = `${CHART}/README.md`;
  const table = valuesTable(chartValues(read(`${CHART}/values.yaml`)));
  return new Map([[readme, withTable(read(readme), table)]]);
}

/** Every described value, in the order of the file. Throws where a value is not described. */
export function chartValues(text: string): readonly ChartValue[] {
  const { contents } = parseDocument(text);
  if (!isMap(contents)) throw new Error('values.yaml must be a map');
  return valuesBelow(contents, '');
}

function valuesBelow(map: YAMLMap, above: string): readonly ChartValue[] {
  return map.items.flatMap(({ key, value }, index) => {
    if (!isScalar(key)) throw new Error(`${above}: a key must be a text`);
    const path = `${above}${String(key.value)}`;
    // The parser gives the comment before the first key to the map.
    const comment = (index === 0 ? map.commentBefore : undefined) ?? key.commentBefore ?? '';
    const description = describedBy(comment);
    if (description !== undefined) {
      const defaultValue: unknown = isNode(value) ? value.toJSON() : value;
      return [{ path, defaultValue, description }];
    }
    if (!isMap(value) || value.items.length === 0) throw new Error(`${path}: not described`);
    return valuesBelow(value, `${path}.`);
  });
}

function describedBy(comment: string): string | undefined {
  const at = comment.lastIndexOf(MARK);
  if (at === -1) return undefined;
  return comment
    .slice(at + MARK.length)
    .split('\n')
    .join('')
    .replace(/ +/g, ' ');
}

function valuesTable(values: readonly ChartValue[]): string {
  const rows = values.map(({ path, defaultValue, description }) => [
    `\`${path}\``,
    `\`${JSON.stringify(defaultValue)}\``,
    description,
  ]);
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(['value', 'default', 'meaning']), '| --- | --- | --- |', ...rows.map(line)].join(
    '\n',
  );
}

function withTable(readme: string, table: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`README.md must have ${BEGIN} and ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n\n${table}\n\n${readme.slice(end)}`;
}

if (require.main === module) {
  for (const [path, content] of chartFiles(process.cwd())) {
    writeFileSync(join(process.cwd(), path), content);
    process.stdout.write(`wrote ${path}\n`);
  }
}
