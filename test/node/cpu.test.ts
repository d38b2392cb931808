/** What a boost does to containers that really run: to their cgroups, and to nothing else of them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SKIPPED_KEY } from '../../src/boost-engine';
import { STARTUP_CPU_BOOSTS } from '../../src/kube';
import type { JsonObject, ResourceRef } from '../../src/kube';
import { aBoost } from '../support/builders';
import type { ResourceLists } from '../support/builders';
import { eventually } from '../support/eventually';
import { weightsOf } from '../support/node/cgroup';
import type { CgroupCpu } from '../support/node/cgroup';
import { installChart, uninstallChart } from '../support/node/chart';
import { NODE_PATIENCE_MS, NodeCluster } from '../support/node/cluster';
import { StartingPod, isMarked, resourcesOf, statusOf } from '../support/node/startingPod';
import { objectAt } from '../support/objectAt';

const NODES: ResourceRef = { group: '', version: 'v1', plural: 'nodes' };
const NOT_SELECTED = { app: 'other' };

interface Shape {
  readonly resources: ResourceLists;
  readonly boosted: { readonly request: number; readonly limit: number | undefined };
}

/** The boost doubles. */
const SHAPES: Readonly<Record<string, Shape>> = {
  Guaranteed: {
    resources: {
      requests: { cpu: '200m', memory: '32Mi' },
      limits: { cpu: '200m', memory: '32Mi' },
    },
    boosted: { request: 400, limit: 400 },
  },
  'Burstable with a limit': {
    resources: { requests: { cpu: '100m' }, limits: { cpu: '300m' } },
    boosted: { request: 200, limit: 600 },
  },
  'Burstable with a request only': {
    resources: { requests: { cpu: '150m' } },
    boosted: { request: 300, limit: undefined },
  },
};

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
  namespace = await cluster.namespace('cpu');
});

afterEach(async () => {
  await cluster.removeNamespace(namespace);
});

async function createBoost(resourcePolicy: JsonObject = {}): Promise<void> {
  const policy = {
    matchContainers: { type: 'RegexName', value: '.*' },
    percentageIncrease: { value: 100 },
  };
  const spec = { resourcePolicy: { containerPolicies: [policy], ...resourcePolicy } };
  const boost = aBoost({ namespace, spec });
  await cluster.client.create({ ...STARTUP_CPU_BOOSTS, namespace }, boost);
}

function expectCpu(actual: CgroupCpu, request: number, limit: number | undefined): void {
  expect(actual.quota).toBe(limit);
  expect(weightsOf(request)).toContain(actual.weight);
}

describe('on a real node', () => {
  it.each(Object.entries(SHAPES))(
    'a pod that is %s starts with its boost and has its own cgroups again when it is Ready',
    async (_, { resources, boosted }) => {
      const plain = await StartingPod.create(cluster, {
        ...{ namespace, name: 'plain', resources },
        labels: NOT_SELECTED,
      });
      const before = await plain.cgroups();

      await createBoost();
      const pod = await StartingPod.create(cluster, { namespace, name: 'boosted', resources });
      const container = await pod.running();
      const during = await pod.cgroups();
      expectCpu(during.container, boosted.request, boosted.limit);
      expectCpu(during.pod, boosted.request, boosted.limit);

      await pod.letReady();
      const after = await pod.unmarked();
      await eventually(async () => {
        expect(await pod.cgroups()).toEqual(before);
      }, NODE_PATIENCE_MS);
      const untouched = await plain.stored();
      expect(resourcesOf(after)).toEqual(resourcesOf(untouched));
      expect(after.status.qosClass).toBe(untouched.status.qosClass);
      expect(statusOf(await pod.stored())).toMatchObject({
        containerID: container,
        restartCount: 0,
      });
    },
  );

  it('a limit that its boost removes is gone from the cgroups, and put back without a restart', async () => {
    await createBoost({ cpuLimits: 'Remove' });
    const pod = await StartingPod.create(cluster, {
      ...{ namespace, name: 'unlimited' },
      resources: { requests: { cpu: '100m' }, limits: { cpu: '300m' } },
    });
    const container = await pod.running();
    const during = await pod.cgroups();
    expectCpu(during.container, 200, undefined);
    expectCpu(during.pod, 200, undefined);

    await pod.letReady();
    await pod.unmarked();
    await eventually(async () => {
      const after = await pod.cgroups();
      expectCpu(after.container, 100, 300);
      expectCpu(after.pod, 100, 300);
    }, NODE_PATIENCE_MS);
    expect(statusOf(await pod.stored())).toMatchObject({
      containerID: container,
      restartCount: 0,
    });
  });

  it('a pod that runs before its boost is raised and taken back within the life of its container', async () => {
    const resources = { requests: { cpu: '100m' }, limits: { cpu: '250m' } };
    const pod = await StartingPod.create(cluster, { namespace, name: 'early', resources });
    const container = await pod.running();
    expectCpu((await pod.cgroups()).container, 100, 250);

    await createBoost();
    await eventually(async () => {
      expectCpu((await pod.cgroups()).container, 200, 500);
    }, NODE_PATIENCE_MS);

    await pod.letReady();
    await pod.unmarked();
    await eventually(async () => {
      expectCpu((await pod.cgroups()).container, 100, 250);
    }, NODE_PATIENCE_MS);
    expect(statusOf(await pod.stored())).toMatchObject({
      containerID: container,
      restartCount: 0,
    });
  });

  it('a native sidecar keeps its CPU while the container beside it is boosted', async () => {
    await createBoost();
    const sidecar = {
      name: 'sidecar',
      image: 'local/busybox:1',
      restartPolicy: 'Always',
      resources: { requests: { cpu: '50m' }, limits: { cpu: '100m' } },
    };
    const pod = await StartingPod.create(cluster, {
      ...{ namespace, name: 'with-sidecar' },
      resources: { requests: { cpu: '100m' }, limits: { cpu: '200m' } },
      spec: { initContainers: [sidecar] },
    });
    const containers = [await pod.running('sidecar'), await pod.running()];
    expectCpu((await pod.cgroups()).container, 200, 400);
    expectCpu((await pod.cgroups('sidecar')).container, 50, 100);

    await pod.letReady();
    await pod.unmarked();
    await eventually(async () => {
      expectCpu((await pod.cgroups()).container, 100, 200);
    }, NODE_PATIENCE_MS);
    expectCpu((await pod.cgroups('sidecar')).container, 50, 100);
    expect([await pod.running('sidecar'), await pod.running()]).toEqual(containers);
  });

  it('a pod that no node has room for with its boost is scheduled and runs with its own CPU', async () => {
    await createBoost();
    // More than half of a node: twice as much fits on none.
    const cpu = Math.floor((await smallestNode()) * 0.6);
    const pod = await StartingPod.create(cluster, {
      ...{ namespace, name: 'large' },
      resources: { requests: { cpu: `${cpu}m` }, limits: { cpu: `${cpu}m` } },
    });
    await pod.running();
    expectCpu((await pod.cgroups()).container, cpu, cpu);

    await eventually(async () => {
      const stored = await pod.stored();
      expect(isMarked(stored)).toBe(false);
      expect(stored.metadata.annotations[SKIPPED_KEY]).toBe('NoRoomOnNode');
    }, NODE_PATIENCE_MS);
    expectCpu((await pod.cgroups()).container, cpu, cpu);
    expect(statusOf(await pod.stored())).toMatchObject({ restartCount: 0 });
  });
});

/** Allocatable millicores; nodes of test/cluster have whole cores. */
async function smallestNode(): Promise<number> {
  const { items } = await cluster.client.list(NODES);
  const cores = items.map((node) => objectAt(objectAt(node, 'status'), 'allocatable').cpu);
  return Math.min(...cores.map(Number)) * 1_000;
}
