/** Writes the files that are derived from the schema: `npm run generate`. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { apiReference } from './apiReference';
import { customResourceDefinitionYaml } from './customResourceDefinition';

/**
 * The files as they should be: path from the repository's root -> content. The same source always
 * gives the same bytes.
 *
 * @param root the repository, for the example that the reference shows
 */
export function generatedFiles(root: string): ReadonlyMap<string, string> {
  const example = readFileSync(join(root, 'docs/examples/boost.yaml'), 'utf8');
  return new Map([
    ['crds/autoscaling.x-k8s.io_startupcpuboosts.yaml', customResourceDefinitionYaml()],
    ['docs/api.md', apiReference(example)],
  ]);
}

/** Writes the files below `root` and tells each path to `report`. */
export function writeGeneratedFiles(root: string, report: (path: string) => void): void {
  for (const [path, content] of generatedFiles(root)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    report(path);
  }
}

if (require.main === module) {
  writeGeneratedFiles(process.cwd(), (path) => {
    process.stdout.write(`wrote ${path}\n`);
  });
}
