/** CPU limits that are removed for a boost, and put back: the whole road, through the real API server. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, readPod, SKIPPED_KEY } from '../../src/boost-engine';
import type { CpuResources } from '../../src/boost-engine';
import { PODS, RESOURCE_QUOTAS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { createLimitRange, createQuota, runAdmission, serveWith } from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { aBoost, aContainer, aPod, percentageIncrease, RESOURCE_SHAPES } from '../support/builders';
import type { ResourceLists, ResourceShape } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

let world: World;
let admission: RunningAdmission;
let controller: RunningController;
let namespace: string;

/** As with REMOVE_LIMITS=true: what a boost says itself comes first. */
beforeAll(async () => {
  world = await World.start();
  admission = await runAdmission(world.controlPlane, { cpuLimits: 'Remove' });
  await serveWith(admission, world.controlPlane);
});

afterAll(async () => {
  await admission.stop();
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  controller = await world.startController();
});

afterEach(async () => {
  await controller.stop();
});

/** Doubles the CPU of `app`; admission knows it. */
async function createBoost(resourcePolicy: JsonObject = {}): Promise<void> {
  const containerPolicies = [percentageIncrease('app', 100)];
  const spec = { resourcePolicy: { containerPolicies, ...resourcePolicy } };
  await world.createBoost(aBoost({ namespace, spec }));
  await eventually(() => {
    expect([...admission.view(namespace).boosts]).toHaveLength(1);
  });
}

async function create(resources: ResourceLists, more: JsonObject = {}): Promise<PodName> {
  return world.createPod(aPod({ namespace, containers: [aContainer({ resources })], ...more }));
}

/** Starts and gets ready; afterwards the pod has this CPU, by one resize and no other change of its spec. */
async function live(pod: PodName, expected: CpuResources): Promise<void> {
  await world.run(pod);
  const { generation = 0 } = await world.read(pod);
  await world.kubelet.ready(pod);
  const after = await world.untilReverted(pod, { app: expected });
  expect(after.generation).toBe(generation + 1);
}

const ORIGINAL = { request: '250m', limit: '1' };

describe('a limit', () => {
  it.each<[ResourceShape, CpuResources, CpuResources]>([
    ['request and limit', { request: '500m' }, ORIGINAL],
    ['limit only', { request: '1' }, { request: '500m', limit: '500m' }],
  ])(
    'of a container with %s is away for the boost, and comes back',
    async (shape, during, after) => {
      await createBoost();
      const pod = await create(RESOURCE_SHAPES[shape]);
      expect(await world.cpuOf(pod)).toEqual({ app: during });
      await live(pod, after);
    },
  );

  it('of a Guaranteed pod is raised, since its QoS class would change', async () => {
    await createBoost();
    const pod = await create(RESOURCE_SHAPES.Guaranteed);
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '1', limit: '1' } });
    await live(pod, { request: '500m', limit: '500m' });
  });

  it.each<[string, CpuResources]>([
    ['Raise', { request: '500m', limit: '2' }],
    ['Keep', { request: '500m', limit: '1' }],
  ])('follows the word of the boost before that of the settings: %s', async (cpuLimits, during) => {
    await createBoost({ cpuLimits });
    const pod = await create(RESOURCE_SHAPES['request and limit']);
    expect(await world.cpuOf(pod)).toEqual({ app: during });
    await live(pod, ORIGINAL);
  });

  it('that LimitRanger would put back at once is raised', async () => {
    await createLimitRange(admission, world.controlPlane, namespace, {
      type: 'Container',
      default: { cpu: '400m' },
    });
    await createBoost();
    const pod = await create(RESOURCE_SHAPES['request and limit']);
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m', limit: '2' } });
    await live(pod, ORIGINAL);
  });

  it('that a quota counts is kept: without one the API server would refuse the pod', async () => {
    await createQuota(admission, world.controlPlane, namespace, { hard: { 'limits.cpu': '1' } });
    const unlimited = { requests: { cpu: '500m' } };
    await eventually(async () => {
      await expect(create(unlimited, { name: 'unlimited', labels: {} })).rejects.toThrow(
        /must specify limits.cpu/,
      );
    });
    await createBoost();
    const pod = await create(RESOURCE_SHAPES['request and limit']);
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m', limit: '1' } });
    await live(pod, ORIGINAL);
  });
});

describe('while the limit is away', () => {
  let pod: PodName;

  beforeEach(async () => {
    await createBoost();
    pod = await create(RESOURCE_SHAPES['request and limit']);
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m' } });
  });

  it('a LimitRange that is made does not change what comes back', async () => {
    await createLimitRange(admission, world.controlPlane, namespace, {
      type: 'Container',
      default: { cpu: '400m' },
    });
    await live(pod, ORIGINAL);
  });

  it('a quota that is made, and used up, holds it back until there is room', async () => {
    await world.run(pod);
    await createQuota(admission, world.controlPlane, namespace, { hard: { 'limits.cpu': '500m' } });
    await eventually(async () => {
      await expect(
        create(RESOURCE_SHAPES['request and limit'], { name: 'more', labels: {} }),
      ).rejects.toThrow(/exceeded quota/);
    });
    await world.kubelet.ready(pod);
    await eventually(async () => {
      expect(await controller.metrics.text()).toMatch(/revert_failures_total\{.*\} [1-9]/);
    });
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m' } });
    await world.client.delete({ ...RESOURCE_QUOTAS, namespace, name: 'quota' });
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it('no node has room: it comes back, and is raised once there is one, which a resize can', async () => {
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual({ app: ORIGINAL });
    });
    await world.run(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m', limit: '2' } });
    });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it('a new leader that knows nothing but the pod puts it back', async () => {
    await controller.stop();
    await world.run(pod);
    await world.kubelet.ready(pod);
    controller = await world.startController();
    await world.untilReverted(pod, { app: ORIGINAL });
  });
});

describe('a manifest', () => {
  it('of a boosted pod, copied, gets the limit that its record tells', async () => {
    await createBoost();
    const first = await create(RESOURCE_SHAPES['request and limit']);
    const { annotations } = await world.read(first);
    const copy = await world.createPod(
      aPod({
        namespace,
        name: 'copy',
        annotations: { [BOOST_KEY]: annotations?.get(BOOST_KEY) ?? '' },
        containers: [aContainer({ resources: { requests: { cpu: '500m' } } })],
      }),
    );
    expect(await world.cpuOf(copy)).toEqual({ app: { request: '500m' } });
    await live(copy, ORIGINAL);
  });

  it('with nothing to raise and no limit to remove is left as it is', async () => {
    await createBoost();
    const pod = readPod(
      await world.client.create(
        { ...PODS, namespace },
        aPod({ namespace, containers: [aContainer({ resources: RESOURCE_SHAPES.BestEffort })] }),
      ),
    );
    expect(pod.annotations?.get(SKIPPED_KEY)).toBe('NoCpu');
    expect(pod.annotations?.has(BOOST_KEY)).toBe(false);
  });
});
