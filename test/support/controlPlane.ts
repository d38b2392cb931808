/** A real API server for one test file: etcd and kube-apiserver of its own, gone when it is done. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';
import { ApiError, createKubeClient, loadKubeConfig } from '../../src/kube';
import type { KubeClient, ResourceRef } from '../../src/kube';

export interface ControlPlaneOptions {
  /** Installs crds/*.yaml and waits until the API server serves them. */
  readonly crds?: boolean;
  /** Writes every write, with what was stored of pods and boosts, to `<dir>/logs/audit.log`. */
  readonly audit?: boolean;
}

export interface ControlPlane {
  readonly kubeconfigPath: string;
  readonly client: KubeClient;
  /** Has the logs of the programs, in `logs/`. */
  readonly dir: string;
  /** Kills kube-apiserver alone; what it has stored stays. Not with TEST_KUBECONFIG. */
  stopApiServer(): Promise<void>;
  /** Starts it again on its port, and waits until it is ready. */
  startApiServer(): Promise<void>;
  stop(): Promise<void>;
}

const CRDS: ResourceRef = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};

const SERVED_WITHIN_MS = 20_000;

const run = promisify(execFile);

/**
 * With TEST_KUBECONFIG it is that cluster, which `stop` leaves as it is; otherwise
 * test/cluster/cluster.sh starts one, which goes down with this process even if that is killed.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const dir = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-'));
  const existing = process.env.TEST_KUBECONFIG ?? '';
  if (existing === '') await up(dir, options);
  const kubeconfigPath = existing === '' ? join(dir, 'kubeconfig') : existing;
  const client = createKubeClient(loadKubeConfig({ kind: 'File', path: kubeconfigPath }));
  const stop = async (): Promise<void> => {
    await client.close();
    if (existing === '') await clusterScript('down', '--dir', dir);
    await rm(dir, { recursive: true, force: true });
  };
  try {
    if (options.crds === true) await installCrds(client);
  } catch (error) {
    await stop();
    throw error;
  }
  const apiServer = async (command: 'stop-api' | 'start-api'): Promise<void> => {
    if (existing !== '') throw new Error(`${command}: the cluster of TEST_KUBECONFIG is not ours`);
    await clusterScript(command, '--dir', dir);
  };
  return {
    kubeconfigPath,
    client,
    dir,
    stopApiServer: () => apiServer('stop-api'),
    startApiServer: () => apiServer('start-api'),
    stop,
  };
}

async function up(dir: string, options: ControlPlaneOptions): Promise<void> {
  const audit = options.audit === true ? ['--audit'] : [];
  await clusterScript('up', '--dir', dir, ...owners(), ...audit);
}

/** A worker of Jest runs its test to the end when Jest itself is killed, so both have to live. */
function owners(): readonly string[] {
  const isWorker = process.send !== undefined;
  return [process.pid, ...(isWorker ? [process.ppid] : [])].map((pid) => `--owner=${pid}`);
}

async function clusterScript(...args: readonly string[]): Promise<void> {
  await run(join(process.cwd(), 'test', 'cluster', 'cluster.sh'), args);
}

/** Every crds/*.yaml; one that is there already is replaced. */
export async function installCrds(client: KubeClient): Promise<void> {
  const folder = join(process.cwd(), 'crds');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml'));
  if (files.length === 0) throw new Error(`${folder} has no CRDs: run "npm run generate"`);
  for (const file of files) {
    const body = manifestSchema.parse(parse(await readFile(join(folder, file), 'utf8')));
    const ref = { ...CRDS, name: body.metadata.name };
    await client.patch(ref, { type: 'apply', body, fieldManager: 'startup-cpu-boost-tests' });
    const { group, names, versions } = body.spec;
    for (const { name: version } of versions) {
      await served(client, { group, version, plural: names.plural });
    }
  }
}

/** The condition Established comes a moment before the API server answers for the resource. */
async function served(client: KubeClient, resource: ResourceRef): Promise<void> {
  const end = Date.now() + SERVED_WITHIN_MS;
  for (;;) {
    try {
      await client.list(resource, { limit: 1 });
      return;
    } catch (error) {
      const absent = error instanceof ApiError && error.failure.kind === 'NotFound';
      if (!absent || Date.now() > end) throw error;
    }
    await delay(50);
  }
}

const manifestSchema = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    group: z.string(),
    names: z.looseObject({ plural: z.string() }),
    versions: z.array(z.looseObject({ name: z.string() })),
  }),
});
