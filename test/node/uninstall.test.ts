/** `helm uninstall` on a cluster at work: no pod stays boosted, and nothing of ours is left. */
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PODS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import { aBoost } from '../support/builders';
import { eventually } from '../support/eventually';
import { weightsOf } from '../support/node/cgroup';
import { installChart, uninstallChart } from '../support/node/chart';
import { NODE_PATIENCE_MS, NodeCluster } from '../support/node/cluster';
import { inventory } from '../support/node/inventory';
import { StartingPod, isMarked, parsePod } from '../support/node/startingPod';

const RESOURCES = { requests: { cpu: '50m' }, limits: { cpu: '100m' } };

/** The definition, so that no boost is lost by an uninstall, and what the API server makes of it. */
const KEPT = [
  'CustomResourceDefinition /startupcpuboosts.autoscaling.x-k8s.io',
  'APIService /v1alpha1.autoscaling.x-k8s.io',
];

const cluster = new NodeCluster();
let system: string;
let namespace: string;

beforeEach(async () => {
  system = await cluster.namespace('uninstall-system');
  namespace = await cluster.namespace('uninstall');
});

afterEach(async () => {
  await cluster.removeNamespace(namespace);
  await cluster.removeNamespace(system);
});

afterAll(async () => {
  await cluster.client.close();
});

describe('helm uninstall', () => {
  it('gives every boosted pod its CPU back and leaves no object behind, while pods are created', async () => {
    const before = await inventory(cluster);
    await installChart(cluster, system);
    await cluster.client.create({ ...STARTUP_CPU_BOOSTS, namespace }, aBoost({ namespace }));
    const boosted = await starting('before');
    const containers = await Promise.all(boosted.map((pod) => pod.running()));
    for (const pod of boosted) expect(isMarked(await pod.stored())).toBe(true);

    const [, meanwhile] = await Promise.all([
      uninstallChart(cluster, system),
      starting('meanwhile'),
    ]);

    for (const pod of [...boosted, ...meanwhile]) {
      await eventually(async () => {
        const { container } = await pod.cgroups();
        expect(container.quota).toBe(100);
        expect(weightsOf(50)).toContain(container.weight);
      }, NODE_PATIENCE_MS);
    }
    expect(await Promise.all(boosted.map((pod) => pod.running()))).toEqual(containers);
    const { items } = await cluster.client.list(PODS);
    const marked = items.map(parsePod).filter(isMarked);
    expect(marked).toEqual([]);
    await eventually(async () => {
      expect(await leftBehind(before)).toEqual([]);
    }, NODE_PATIENCE_MS);
  });
});

async function starting(prefix: string): Promise<readonly StartingPod[]> {
  const pods: StartingPod[] = [];
  for (let i = 1; i <= 6; i++) {
    const name = `${prefix}-${i}`;
    pods.push(await StartingPod.create(cluster, { namespace, name, resources: RESOURCES }));
  }
  return pods;
}

/** Objects of our namespace, and those of the cluster, that were not there before. */
async function leftBehind(before: ReadonlySet<string>): Promise<readonly string[]> {
  const after = await inventory(cluster);
  return [...after].filter(
    (object) => !before.has(object) && !object.includes(` ${namespace}/`) && !KEPT.includes(object),
  );
}
