/** What `helm template` makes of our chart, as the plain JSON that the API server takes. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { objectOf } from './objectAt';
import type { JsonObject } from '../../src/kube';

export interface ChartOptions {
  readonly namespace: string;
  /** By path, such as `policies.enabled`. */
  readonly values?: Readonly<Record<string, string | boolean>>;
}

export interface Release {
  readonly name?: string;
  readonly namespace?: string;
  /** As a values file has them. */
  readonly values?: JsonObject;
}

export type ChartAnswer =
  | { readonly kind: 'Rendered'; readonly objects: readonly JsonObject[] }
  | { readonly kind: 'Refused'; readonly message: string };

export const CHART = join(process.cwd(), 'helm', 'kube-startup-cpu-boost');

/** Of the release and in its names. */
export const RELEASE = 'startup-cpu-boost';

const run = promisify(execFile);

/** A release with every option prints hundreds of kB; Node's own limit is 1 MiB. */
const OUTPUT = { maxBuffer: 16 * 2 ** 20 };

const failureSchema = z.looseObject({ stderr: z.string(), stdout: z.string() });

/** Everything but CRDs, in the order in which helm prints it. */
export async function renderChart(options: ChartOptions): Promise<readonly JsonObject[]> {
  const values = Object.entries({ fullnameOverride: RELEASE, ...options.values });
  return render(
    { namespace: options.namespace },
    values.flatMap(([path, value]) => ['--set', `${path}=${value}`]),
  );
}

/** The objects of the release. Rejects where the chart refuses the values. */
export async function templateChart(release: Release = {}): Promise<readonly JsonObject[]> {
  return withValues(release, (args) => render(release, args));
}

/** What the chart says to values that it may not take. */
export async function askChart(release: Release): Promise<ChartAnswer> {
  try {
    return { kind: 'Rendered', objects: await templateChart(release) };
  } catch (error) {
    const failure = failureSchema.safeParse(error);
    if (!failure.success) throw error;
    return { kind: 'Refused', message: failure.data.stderr };
  }
}

/** `helm lint --strict`: its code is 0 where there is nothing to complain about. */
export async function lintChart(release: Release): Promise<{ code: number; output: string }> {
  return withValues(release, async (values) => {
    const place = ['--namespace', release.namespace ?? 'default'];
    try {
      const { stdout } = await helm(['lint', '--strict', CHART, ...place, ...values]);
      return { code: 0, output: stdout };
    } catch (error) {
      const { stdout, stderr } = failureSchema.parse(error);
      return { code: 1, output: stdout + stderr };
    }
  });
}

async function render(release: Release, args: readonly string[]): Promise<readonly JsonObject[]> {
  const { name = RELEASE, namespace = 'default' } = release;
  const { stdout } = await helm(['template', name, CHART, '--namespace', namespace, ...args]);
  return parseAllDocuments(stdout)
    .map((document) => {
      // Such as a key that is there twice, of which Helm takes the last one.
      for (const error of document.errors) throw error;
      return objectOf(document.toJSON());
    })
    .filter((object) => 'kind' in object);
}

async function withValues<T>(
  { values }: Release,
  work: (args: readonly string[]) => Promise<T>,
): Promise<T> {
  if (values === undefined) return work([]);
  const folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-values-'));
  try {
    const file = join(folder, 'values.json');
    await writeFile(file, JSON.stringify(values));
    return await work(['--values', file]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function helm(args: readonly string[]): Promise<{ stdout: string }> {
  return run(join(await toolFolder('helm'), 'helm'), args, OUTPUT);
}

/** The folder with a program of the test cluster, which is built where it is missing. */
export async function toolFolder(tool: string): Promise<string> {
  const { stdout } = await run(join(process.cwd(), 'test', 'cluster', 'build.sh'), [tool]);
  return stdout.trim();
}
