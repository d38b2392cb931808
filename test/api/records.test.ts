/** The record on a pod is written by whoever may write pods: it never raises CPU, and never stops the controller. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import type { CpuResources } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { RESOURCE_SHAPES, aBoost, aContainer, aPod } from '../support/builders';
import type { ResourceLists } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

/** Of aContainer, and twice that. */
const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

const BOOSTED_LISTS: ResourceLists = {
  requests: { cpu: '500m', memory: '64Mi' },
  limits: { cpu: '2', memory: '128Mi' },
};

/** What our webhook writes on a pod of aContainer that aBoost doubles. */
const RECORD = {
  state: 'Active',
  timestamp: '2026-01-02T03:04:05.678Z',
  initCPURequests: { app: '250m' },
  initCPULimits: { app: '1' },
  boostedCPURequests: { app: '500m' },
  boostedCPULimits: { app: '2' },
};

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
  // Pods here have the record that a test gives to them, or none.
  controller = await world.startController({ catchUpMs: 0 });
  boost = await world.createBoost(aBoost({ namespace }));
});

afterEach(async () => {
  await controller.stop();
});

/** A running pod with the marker of `boost` and this record, as anybody can create it. */
async function marked(
  record: JsonObject | string,
  resources: ResourceLists = BOOSTED_LISTS,
  name = 'app',
): Promise<PodName> {
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  const pod = await world.createPod(
    aPod({
      namespace,
      name,
      labels: { app: 'app', [BOOST_KEY]: 'boost' },
      annotations: { [BOOST_KEY]: text },
      containers: [aContainer({ resources })],
    }),
  );
  await world.run(pod);
  return pod;
}

/** Once a pod that came later is through, the others have had their turn too. */
async function othersHadTheirTurn(): Promise<void> {
  const pod = await world.createBoosted(aPod({ namespace, name: 'later' }), boost);
  await world.run(pod);
  await world.kubelet.ready(pod);
  await world.untilReverted(pod, ORIGINAL);
}

async function expectStuck(count: number, reason: string): Promise<void> {
  await eventually(async () => {
    expect(await world.statusOf(boost)).toMatchObject({ stuckPods: count });
    const line = `startup_cpu_boost_stuck_pods{reason="${reason}"} ${count}`;
    expect(await controller.metrics.text()).toContain(line);
  });
}

async function annotate(pod: PodName, text: string | null): Promise<void> {
  await world.client.patch(
    { ...PODS, ...pod },
    { type: 'merge', body: { metadata: { annotations: { [BOOST_KEY]: text } } } },
  );
}

/** As a VerticalPodAutoscaler in InPlaceOrRecreate mode does. */
async function resize(pod: PodName, resources: ResourceLists): Promise<void> {
  await world.client.patch(
    { ...PODS, ...pod, subresource: 'resize' },
    { type: 'strategic', body: { spec: { containers: [{ name: 'app', resources }] } } },
  );
}

describe('a record that cannot be read leaves the pod as it is, and is reported', () => {
  it.each<[string, string]>([
    ['empty', ''],
    ['broken JSON', '{"state":"Active"'],
    ['a number', '7'],
    ['null', 'null'],
    ['a list', '[]'],
    ['of an unknown state', JSON.stringify({ ...RECORD, state: 'Done' })],
    ['with a list for a map', JSON.stringify({ ...RECORD, initCPURequests: ['250m'] })],
    ['with a number for a quantity', JSON.stringify({ ...RECORD, initCPURequests: { app: 1 } })],
    ['with no quantity', JSON.stringify({ ...RECORD, initCPULimits: { app: 'a little' } })],
    ['with a negative quantity', JSON.stringify({ ...RECORD, initCPULimits: { app: '-1' } })],
    ['nested deep', `{"initCPURequests":${'['.repeat(30_000)}${']'.repeat(30_000)}}`],
    ['huge', JSON.stringify({ ...RECORD, note: 'x'.repeat(200_000) })],
  ])('%s', async (_what, text) => {
    const pod = await marked(text);
    await world.kubelet.ready(pod);
    await expectStuck(1, 'RecordUnreadable');
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    expect((await world.read(pod)).annotations?.get(BOOST_KEY)).toBe(text);

    // A person who mends the record has the boost ended.
    await annotate(pod, JSON.stringify(RECORD));
    await world.untilReverted(pod, ORIGINAL);
    await expectStuck(0, 'RecordUnreadable');
  });

  it('and is forgotten with its pod', async () => {
    const pod = await marked('{');
    await expectStuck(1, 'RecordUnreadable');
    await world.client.delete({ ...PODS, ...pod }, { gracePeriodSeconds: 0 });
    await expectStuck(0, 'RecordUnreadable');
  });
});

describe('a forged record ends without a raise', () => {
  it.each<[string, JsonObject]>([
    [
      'where its originals are higher than what the pod has',
      { ...RECORD, initCPURequests: { app: '4' }, initCPULimits: { app: '8' } },
    ],
    [
      'where it tells only originals, as upstream does, and they are higher',
      { initCPURequests: { app: '4' }, initCPULimits: { app: '8' } },
    ],
    [
      'where its originals are beyond all bounds',
      { initCPURequests: { app: '1e99' }, initCPULimits: { app: '9999999999999999E' } },
    ],
    ['where it is about containers that the pod has not', { initCPURequests: { other: '1m' } }],
    ['where it names what every object has', JSON.parse('{"initCPULimits":{"__proto__":"1m"}}')],
    ['where it says nothing', {}],
    [
      'where the boost set other values than the pod has',
      { ...RECORD, boostedCPURequests: { app: '700m' }, boostedCPULimits: { app: '3' } },
    ],
  ])('%s', async (_what, record) => {
    const pod = await marked(record);
    const { generation } = await world.read(pod);
    await world.kubelet.ready(pod);
    const cleared = await world.untilReverted(pod, BOOSTED);
    expect(cleared.generation).toBe(generation);
  });

  it('and lowers just the value that it may', async () => {
    const record = { ...RECORD, initCPULimits: { app: '8' } };
    const pod = await marked(record);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '250m', limit: '2' } });
  });

  it('where the pod has no CPU of its own', async () => {
    const pod = await marked(RECORD, RESOURCE_SHAPES['memory only']);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: {} });
  });

  it('where its limit is below the request of the pod', async () => {
    const pod = await marked({ initCPULimits: { app: '100m' } }, RESOURCE_SHAPES['request only']);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '250m' } });
  });

  it('and originals finer than the API server stores are reached by one resize', async () => {
    const pod = await marked({ initCPURequests: { app: '0.0001' } });
    const { generation = 0 } = await world.read(pod);
    await world.kubelet.ready(pod);
    const reverted = await world.untilReverted(pod, { app: { request: '1m', limit: '2' } });
    expect(reverted.generation).toBe(generation + 1);
  });
});

describe('a record that was copied with the manifest of a boosted pod', () => {
  it('gives the copy its CPU back', async () => {
    const pod = await marked(RECORD);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('says nothing about values that were changed in the copy', async () => {
    const pod = await marked(RECORD, { requests: { cpu: '700m' }, limits: { cpu: '1500m' } });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '700m', limit: '1500m' } });
  });
});

describe('a record of google/kube-startup-cpu-boost', () => {
  const originals = { initCPURequests: { app: '250m' }, initCPULimits: { app: '1' } };

  it.each(['Active', 'Reverted', 'Infeasible'])(
    'of state %s gives the CPU back that the pod still has',
    async (state) => {
      const pod = await marked({ state, timestamp: RECORD.timestamp, ...originals });
      await world.kubelet.ready(pod);
      await world.untilReverted(pod, ORIGINAL);
    },
  );

  it('with nulls for what a pod had not leaves it without', async () => {
    const record = { timestamp: RECORD.timestamp, ...originals, initCPULimits: null };
    const pod = await marked(record, { requests: { cpu: '500m' } });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '250m' } });
  });
});

describe('half a marker', () => {
  it('a label alone says nothing about the CPU, and counts as no boost', async () => {
    const pod = await world.createPod(
      aPod({ namespace, labels: { app: 'app', [BOOST_KEY]: 'boost' } }),
    );
    await world.run(pod);
    await world.kubelet.ready(pod);
    await othersHadTheirTurn();
    expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
    // The other one may have come and gone between two statuses.
    await eventually(async () => {
      const status = await world.statusOf(boost);
      expect(status).toMatchObject({ activeContainerBoosts: 0, stuckPods: 0 });
      expect(status.boostedPods).toBeLessThanOrEqual(1);
      expect(status.revertedPods).toBe(status.boostedPods);
    });
  });

  it('an annotation whose label names another boost is judged by that boost', async () => {
    await world.createBoost(
      aBoost({ namespace, name: 'other', selector: { matchLabels: { app: 'none' } } }),
    );
    const pod = await marked(RECORD);
    await label(pod, 'other');
    await othersHadTheirTurn();
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('an annotation whose label names no boost gives the CPU back', async () => {
    const pod = await marked(RECORD);
    await label(pod, 'none');
    await world.untilReverted(pod, ORIGINAL);
  });

  it('an annotation whose label was taken off gives the CPU back', async () => {
    const pod = await marked(RECORD);
    await label(pod, null);
    await world.untilReverted(pod, ORIGINAL);
  });

  async function label(pod: PodName, value: string | null): Promise<void> {
    await world.client.patch(
      { ...PODS, ...pod },
      { type: 'merge', body: { metadata: { labels: { [BOOST_KEY]: value } } } },
    );
  }
});

describe('a record that is edited while the pod is boosted', () => {
  let pod: PodName;
  beforeEach(async () => {
    pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
  });

  it('is believed where it is lower', async () => {
    await annotate(pod, JSON.stringify({ ...RECORD, initCPURequests: { app: '100m' } }));
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '100m', limit: '1' } });
  });

  it('raises nothing where it is higher', async () => {
    await annotate(pod, JSON.stringify({ ...RECORD, initCPURequests: { app: '5' } }));
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '500m', limit: '1' } });
  });

  it('is no way back any more where it was removed, which stops nothing else', async () => {
    await annotate(pod, null);
    await world.kubelet.ready(pod);
    await othersHadTheirTurn();
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ activeContainerBoosts: 0, stuckPods: 0 });
    });
  });
});

describe('CPU that somebody else set while the pod was boosted stays', () => {
  it.each<[string, ResourceLists, CpuResources]>([
    [
      'above the boost',
      { requests: { cpu: '600m' }, limits: { cpu: '3' } },
      { request: '600m', limit: '3' },
    ],
    [
      'between the boost and the original',
      { requests: { cpu: '400m' }, limits: { cpu: '1500m' } },
      { request: '400m', limit: '1500m' },
    ],
    [
      'below the original',
      { requests: { cpu: '100m' }, limits: { cpu: '500m' } },
      { request: '100m', limit: '500m' },
    ],
    ['of the request alone', { requests: { cpu: '400m' } }, { request: '400m', limit: '1' }],
    [
      'to just the original',
      { requests: { cpu: '250m' }, limits: { cpu: '1' } },
      { request: '250m', limit: '1' },
    ],
  ])('%s', async (_what, resources, expected) => {
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await resize(pod, resources);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: expected });
  });
});

it('a container may be named like what every object has', async () => {
  const pod = await world.createBoosted(
    aPod({ namespace, containers: [aContainer({ name: 'constructor' })] }),
    await world.createBoost(
      aBoost({
        namespace,
        name: 'names',
        containerPolicies: [
          {
            matchContainers: { type: 'RegexName', value: '.*' },
            percentageIncrease: { value: 100 },
          },
        ],
      }),
    ),
  );
  await world.run(pod);
  expect(await world.cpuOf(pod)).toEqual({ constructor: BOOSTED.app });
  await world.kubelet.ready(pod);
  await world.untilReverted(pod, { constructor: ORIGINAL.app });
});
