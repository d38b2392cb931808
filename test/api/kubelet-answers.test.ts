/** Whatever the kubelet answers to a revert: the marker goes when it is done, and never a second resize. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { aBoost, aContainer, aPod } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };

let world: World;
let controller: RunningController;
let namespace: string;
let boost: JsonObject;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  controller = await world.startController({ confirmTimeoutMs: 1_000 });
  boost = await world.createBoost(aBoost({ namespace }));
});

afterEach(async () => {
  await controller.stop();
});

/** A pod that was resized back, and whose kubelet has said nothing to it yet. */
async function resizedBack(name: string): Promise<PodName> {
  world.answerResize(name, 'Ignore');
  const pod = await world.createBoosted(aPod({ namespace, name }), boost);
  await world.run(pod);
  await world.kubelet.ready(pod);
  await eventually(async () => {
    expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
  });
  return pod;
}

async function setStatus(pod: PodName, status: JsonObject): Promise<void> {
  await world.client.patch(
    { ...PODS, ...pod, subresource: 'status' },
    { type: 'strategic', body: { status } },
  );
}

function condition(type: string, reason: string): JsonObject {
  return {
    type,
    status: 'True',
    reason,
    message: reason,
    lastTransitionTime: new Date().toISOString(),
  };
}

async function expectStuck(count: number, reason: string): Promise<void> {
  await eventually(async () => {
    expect(await world.statusOf(boost)).toMatchObject({ stuckPods: count });
    const line = `startup_cpu_boost_stuck_pods{reason="${reason}"} ${count}`;
    expect(await controller.metrics.text()).toContain(line);
  });
}

/** The one resize of the revert was the last change of the spec. */
async function expectCleared(pod: PodName, generation: number | undefined): Promise<void> {
  expect((await world.untilReverted(pod, ORIGINAL)).generation).toBe(generation);
}

describe('the marker stays until the kubelet has', () => {
  it.each([
    ['the resize in progress', 'PodResizeInProgress', ''],
    ['the resize in progress with an error', 'PodResizeInProgress', 'Error'],
    ['the resize deferred', 'PodResizePending', 'Deferred'],
  ])('%s, and then done', async (_what, type, reason) => {
    const pod = await resizedBack(type.toLowerCase() + reason.toLowerCase());
    const { generation = 0 } = await world.read(pod);
    await setStatus(pod, {
      observedGeneration: generation,
      conditions: [condition(type, reason)],
    });
    await expectStuck(1, 'NotConfirmed');
    expect((await world.read(pod)).annotations?.has(BOOST_KEY)).toBe(true);
    await world.kubelet.acceptResize(pod);
    await expectCleared(pod, generation);
    await expectStuck(0, 'NotConfirmed');
  });

  it('called it infeasible, and then done it', async () => {
    const pod = await resizedBack('infeasible');
    const { generation } = await world.read(pod);
    await world.kubelet.infeasibleResize(pod);
    await expectStuck(1, 'Infeasible');
    await world.kubelet.acceptResize(pod);
    await expectCleared(pod, generation);
  });
});

describe('a kubelet that never confirms', () => {
  it('is reported, and the pod is left alone', async () => {
    const pod = await resizedBack('lost');
    const { generation } = await world.read(pod);
    await expectStuck(1, 'NotConfirmed');
    expect((await world.read(pod)).generation).toBe(generation);
    await world.kubelet.acceptResize(pod);
    await expectCleared(pod, generation);
  });

  it('is forgotten with its pod', async () => {
    const pod = await resizedBack('gone');
    await expectStuck(1, 'NotConfirmed');
    await world.client.delete({ ...PODS, ...pod }, { gracePeriodSeconds: 0 });
    await expectStuck(0, 'NotConfirmed');
  });
});

it('a kubelet of before 1.34, which tells no generation, is believed after a while', async () => {
  const pod = await world.createBoosted(aPod({ namespace, name: 'old-kubelet' }), boost);
  await world.kubelet.bind(pod);
  const allocated = (cpu: string) => ({
    containerStatuses: [
      {
        name: 'app',
        image: 'example/app:1',
        imageID: '',
        ready: true,
        restartCount: 0,
        allocatedResources: { cpu, memory: '64Mi' },
        resources: { requests: { cpu } },
      },
    ],
  });
  world.answerResize('old-kubelet', 'Ignore');
  await setStatus(pod, {
    phase: 'Running',
    ...allocated('500m'),
    conditions: [condition('Ready', 'Started')],
  });
  await eventually(async () => {
    expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
  });
  const { generation } = await world.read(pod);
  await setStatus(pod, allocated('250m'));
  await expectCleared(pod, generation);
});

it('a runtime that reports rounded values is no reason to wait', async () => {
  const pod = await resizedBack('rounded');
  const { generation = 0 } = await world.read(pod);
  await setStatus(pod, {
    observedGeneration: generation,
    containerStatuses: [
      {
        name: 'app',
        allocatedResources: { cpu: '250m', memory: '64Mi' },
        resources: { requests: { cpu: '249m' }, limits: { cpu: '1010m' } },
      },
    ],
  });
  await expectCleared(pod, generation);
});

it('a pod whose containers have not begun is done with the resize itself', async () => {
  const pod = await world.createBoosted(
    aPod({ namespace, name: 'pulling', containers: [aContainer()] }),
    boost,
  );
  await world.kubelet.bind(pod);
  await world.client.delete({
    group: 'autoscaling.x-k8s.io',
    version: 'v1alpha1',
    plural: 'startupcpuboosts',
    namespace,
    name: 'boost',
  });
  await world.untilReverted(pod, ORIGINAL);
});
