/** Every duration policy, and every edit from one to another while pods are boosted. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, parseRecord } from '../../src/boost-engine';
import { PODS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { UNTIL_READY, aBoost, aPod, untilSeconds } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

/** Longer than any test. */
const LONG = 3_600;
/** Long before any test: the end of every fixed duration here. */
const YESTERDAY = new Date(Date.now() - 86_400_000);

const POLICIES = {
  condition: UNTIL_READY,
  fixed: untilSeconds(LONG),
  both: { ...UNTIL_READY, ...untilSeconds(LONG) },
} as const satisfies Readonly<Record<string, JsonObject>>;
type Policy = keyof typeof POLICIES;

const PAIRS = (['condition', 'fixed', 'both'] as const).flatMap((from) =>
  (['condition', 'fixed', 'both'] as const)
    .filter((to) => to !== from)
    .map((to): readonly [Policy, Policy] => [from, to]),
);

let world: World;
let controller: RunningController;
let namespace: string;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  controller = await world.startController({ maximumBoostMs: 172_800_000 });
});

afterEach(async () => {
  await controller.stop();
});

async function restart(...options: Parameters<World['startController']>): Promise<void> {
  await controller.stop();
  controller = await world.startController(...options);
}

async function boosted(name: string, boost: JsonObject, scheduled?: Date): Promise<PodName> {
  const pod = await world.createBoosted(aPod({ namespace, name }), boost);
  await world.kubelet.bind(pod, scheduled === undefined ? {} : { at: scheduled });
  await world.kubelet.running(pod);
  return pod;
}

/** A merge patch that leaves just this policy. */
async function edit(durationPolicy: JsonObject): Promise<void> {
  await world.client.patch(
    { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
    {
      type: 'merge',
      body: {
        spec: { durationPolicy: { podCondition: null, fixedDuration: null, ...durationPolicy } },
      },
    },
  );
}

/** Two pods differ in one thing only: the one that is due is reverted, the other is not. */
async function expectOnly(due: PodName, other: PodName): Promise<void> {
  await world.untilReverted(due, ORIGINAL);
  expect(await world.cpuOf(other)).toEqual(BOOSTED);
}

describe('an edit is judged at once, without an event of the pod', () => {
  it.each(PAIRS)('from %s to %s, and then the new policy ends the boost', async (from, to) => {
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: POLICIES[from] }));
    const pod = await boosted('due', boost);
    const other = await boosted('other', boost);
    await edit(POLICIES[to]);
    switch (to) {
      case 'condition':
      case 'both':
        await world.kubelet.ready(pod);
        return expectOnly(pod, other);
      case 'fixed': {
        // Only a pod that was scheduled long ago is past the new duration.
        const old = await boosted('old', boost, YESTERDAY);
        return expectOnly(old, other);
      }
    }
  });

  // From both to condition there is no such pod: being Ready has ended it before the edit.
  const PAST = PAIRS.filter(([from, to]) => from !== 'both' || to !== 'condition');
  it.each(PAST)('from %s to %s while a pod is past the new end already', async (from, to) => {
    // Under `fixed` Ready means nothing, so a Ready pod waits for the edit; the others wait as they are.
    const start = from === 'fixed' ? untilSeconds(86_399) : POLICIES[from];
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: start }));
    const due = await boosted('due', boost);
    const other = await boosted('other', boost);
    if (from === 'fixed') await world.kubelet.ready(due);
    const past = untilSeconds(1);
    const target =
      to === 'fixed' ? past : to === 'both' ? { ...UNTIL_READY, ...past } : UNTIL_READY;
    await edit(target);
    await world.untilReverted(due, ORIGINAL);
    if (to === 'condition') expect(await world.cpuOf(other)).toEqual(BOOSTED);
    else await world.untilReverted(other, ORIGINAL);
  });
});

describe('a pod', () => {
  it('that is Ready for a moment only is reverted, and stays so when it is not Ready again', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await boosted('flapping', boost);
    await world.kubelet.ready(pod);
    await world.kubelet.notReady(pod);
    await world.kubelet.ready(pod);
    const { generation } = await world.untilReverted(pod, ORIGINAL);
    await world.kubelet.notReady(pod);
    await world.kubelet.ready(pod);
    expect((await world.read(pod)).generation).toBe(generation);
  });

  it('whose container crashes again and again ends at the longest time', async () => {
    await restart({ maximumBoostMs: 2_000 });
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await boosted('crashing', boost);
    await world.kubelet.restarted(pod, 'app');
    await world.kubelet.restarted(pod, 'app');
    await world.untilReverted(pod, ORIGINAL);
  });

  it('that never gets Ready ends at the longest time', async () => {
    await restart({ maximumBoostMs: 1_000 });
    const boost = await world.createBoost(aBoost({ namespace }));
    await world.untilReverted(await boosted('starting', boost), ORIGINAL);
  });

  it('that nobody schedules is taken back at the longest time, and its record waits', async () => {
    await restart({ maximumBoostMs: 1_000 });
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await eventually(async () => {
      const facts = await world.read(pod);
      expect(facts.containers[0]?.cpu).toEqual(ORIGINAL.app);
      const parsed = parseRecord(facts.annotations?.get(BOOST_KEY) ?? '');
      expect(parsed).toMatchObject({ kind: 'Record', record: { state: 'Pending' } });
    });
    await world.kubelet.bind(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('uses up none of its fixed duration before it is scheduled', async () => {
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: untilSeconds(1) }));
    const waiting = await world.createBoosted(aPod({ namespace, name: 'waiting' }), boost);
    await expectOnly(await boosted('scheduled', boost), waiting);
  });

  it('that was recreated under its name is a pod of its own', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const first = await boosted('same', boost);
    await world.client.delete({ ...PODS, ...first }, { gracePeriodSeconds: 0 });
    await eventually(async () => {
      expect(await world.exists(first)).toBe(false);
    });
    const second = await boosted('same', boost);
    expect(await world.cpuOf(second)).toEqual(BOOSTED);
    await world.kubelet.ready(second);
    await world.untilReverted(second, ORIGINAL);
  });
});

describe('a controller whose clock is wrong', () => {
  it.each([-30_000, 30_000])('by %i ms reverts neither too early nor never', async (wrongByMs) => {
    await restart({}, { wrongByMs });
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: untilSeconds(20) }));
    const fresh = await boosted('fresh', boost);
    const old = await boosted('old', boost, new Date(Date.now() - 21_000));
    await expectOnly(old, fresh);
  });
});
