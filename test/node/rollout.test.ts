/** Restarts and drains of our own pods, while others are created all the time: none misses its boost. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { PODS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import { aBoost } from '../support/builders';
import { eventually } from '../support/eventually';
import { DEPLOYMENTS, SYSTEM_NAMESPACE, installChart, uninstallChart } from '../support/node/chart';
import { NODE_PATIENCE_MS, NodeCluster } from '../support/node/cluster';
import { PodStream, brokenPromises, countsOf } from '../support/node/podStream';
import type { PodEnd } from '../support/node/podStream';

const cluster = new NodeCluster();
let namespace: string;

beforeAll(async () => {
  await installChart(cluster);
});

afterAll(async () => {
  await uninstallChart(cluster);
  await cluster.client.close();
});

beforeEach(async () => {
  namespace = await cluster.namespace('rollout');
  await cluster.client.create({ ...STARTUP_CPU_BOOSTS, namespace }, aBoost({ namespace }));
});

afterEach(async () => {
  await cluster.removeNamespace(namespace);
});

/** What became of the pods that were created during the work, and for a moment before and after it. */
async function podsDuring(work: () => Promise<void>): Promise<readonly PodEnd[]> {
  const stream = new PodStream(cluster, namespace);
  try {
    await work();
  } finally {
    await stream.end();
  }
  return stream.end();
}

/** The nodes that our pods are on, by the name of the pod. */
async function whereabouts(): Promise<ReadonlyMap<string, string>> {
  const { items } = await cluster.client.list(PODS, { namespace: SYSTEM_NAMESPACE });
  const pods = z.array(placedPodSchema).parse(items);
  return new Map(pods.map(({ metadata, spec }) => [metadata.name, spec.nodeName]));
}

const placedPodSchema = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({ nodeName: z.string() }),
});

function report(ends: readonly PodEnd[]): void {
  process.stderr.write(`    ${ends.length} pods: ${JSON.stringify(countsOf(ends))}\n`);
}

describe('while pods are created all the time', () => {
  it('none misses or keeps its boost when both Deployments are restarted', async () => {
    const before = await whereabouts();
    const ends = await podsDuring(async () => {
      const deployments = DEPLOYMENTS.map((name) => `deployment/${name}`);
      await cluster.kubectl('rollout', 'restart', ...deployments, '-n', SYSTEM_NAMESPACE);
      for (const deployment of deployments) {
        await cluster.kubectl('rollout', 'status', deployment, '-n', SYSTEM_NAMESPACE);
      }
      await eventually(async () => {
        const names = [...(await whereabouts()).keys()];
        expect(names.filter((name) => before.has(name))).toEqual([]);
      }, NODE_PATIENCE_MS);
    });
    report(ends);
    expect(brokenPromises(ends)).toEqual([]);
    expect(countsOf(ends).AtAdmission).toBeGreaterThan(0);
  });

  it('none misses or keeps its boost when a node is drained under our budgets', async () => {
    const node = [...(await whereabouts()).values()][0] ?? '';
    const ends = await podsDuring(async () => {
      try {
        await cluster.kubectl('drain', node, '--force', '--delete-emptydir-data', '--timeout=120s');
        const deployments = DEPLOYMENTS.map((name) => `deployment/${name}`);
        for (const deployment of deployments) {
          await cluster.kubectl('rollout', 'status', deployment, '-n', SYSTEM_NAMESPACE);
        }
        expect([...(await whereabouts()).values()]).not.toContain(node);
      } finally {
        await cluster.kubectl('uncordon', node);
      }
    });
    report(ends);
    expect(brokenPromises(ends)).toEqual([]);
    expect(countsOf(ends).AtAdmission).toBeGreaterThan(0);
  });
});
