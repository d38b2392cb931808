/** The chart, installed as a cluster administrator does it. */
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
  await cluster.helm('uninstall', RELEASE, '-n', namespace, '--wait', HELM_TIMEOUT);
}
