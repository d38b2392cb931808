/** The chart, installed as a cluster administrator does it. */
import { appendFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setting } from './cluster';
import type { NodeCluster } from './cluster';

export const RELEASE = 'startup-cpu-boost';
export const SYSTEM_NAMESPACE = 'startup-cpu-boost-system';
export const DEPLOYMENTS = [`${RELEASE}-admission`, `${RELEASE}-controller`] as const;

const HELM_TIMEOUT = '--timeout=180s';

/** Resolves when every replica of both processes is Ready. */
export async function installChart(
  cluster: NodeCluster,
  namespace = SYSTEM_NAMESPACE,
): Promise<void> {
  const [repository = '', tag = ''] = setting('NODE_TEST_IMAGE').split(':');
  const image = `image.repository=${repository},image.tag=${tag},image.pullPolicy=Never`;
  const where = ['--namespace', namespace, '--create-namespace'];
  const chart = 'helm/kube-startup-cpu-boost';
  await cluster.helm('install', RELEASE, chart, ...where, '--set', image, '--wait', HELM_TIMEOUT);
}

export async function uninstallChart(
  cluster: NodeCluster,
  namespace = SYSTEM_NAMESPACE,
): Promise<void> {
  await keepLogs(cluster, namespace);
  await cluster.helm('uninstall', RELEASE, '-n', namespace, '--wait', HELM_TIMEOUT);
}

/** Beside those of the cluster's programs, for whoever looks into a failure: they go with the pods. */
async function keepLogs(cluster: NodeCluster, namespace: string): Promise<void> {
  const ours = ['--namespace', namespace, `--selector=app.kubernetes.io/instance=${RELEASE}`];
  const logs = await cluster.kubectl('logs', ...ours, '--prefix', '--tail=-1');
  const folder = join(dirname(cluster.kubeconfigPath), 'logs');
  await appendFile(join(folder, `pods-of-${namespace}.log`), logs);
}
