/** What `helm template` makes of our chart, as the plain JSON that the API server takes. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { objectOf } from './objectAt';
import type { JsonObject } from '../../src/kube';

export interface ChartOptions {
  readonly namespace: string;
  /** By path, such as `policies.enabled`. */
  readonly values?: Readonly<Record<string, string | boolean>>;
}

const CHART = join(process.cwd(), 'helm', 'kube-startup-cpu-boost');

/** Of the release and in its names. */
export const RELEASE = 'startup-cpu-boost';

const run = promisify(execFile);

/** Everything but hooks, in the order in which helm prints it. */
export async function renderChart(options: ChartOptions): Promise<readonly JsonObject[]> {
  const folder = await toolFolder('helm');
  const values = Object.entries({ fullnameOverride: RELEASE, ...options.values });
  const { stdout } = await run(join(folder, 'helm'), [
    'template',
    RELEASE,
    CHART,
    '--namespace',
    options.namespace,
    ...values.flatMap(([path, value]) => ['--set', `${path}=${value}`]),
  ]);
  return parseAllDocuments(stdout)
    .map((document) => objectOf(document.toJSON()))
    .filter((object) => 'kind' in object);
}

/** The folder with a program of the test cluster, which is built where it is missing. */
export async function toolFolder(tool: string): Promise<string> {
  const { stdout } = await run(join(process.cwd(), 'test', 'cluster', 'build.sh'), [tool]);
  return stdout.trim();
}
