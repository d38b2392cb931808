/** The boost engine in namespaces with rules: against a second model, and against LimitRanger and quota. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileBoost, decideBoost, decideRevert } from '../../src/boost-engine';
import type { BoostDecision } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import {
  aptFor,
  boost,
  boosts,
  forgedRecord,
  marked,
  NOON,
  resourcePolicy,
  stored,
} from '../support/engineArbitraries';
import { applied, raisedContainers, resourcesOf } from '../support/engineLaws';
import { runs, Tally } from '../support/fuzzing';
import { limitRanges, quotas, ruledPod } from '../support/namespaceArbitraries';
import { objectAt } from '../support/objectAt';
import { LIFE_SETTINGS } from '../support/podWorld';
import { simpleBoost, simpleRaise } from '../support/simpleBoostModel';
import {
  containersOf,
  simpleLimitRangeAllows,
  simpleQos,
  simpleTracked,
} from '../support/simplePod';

interface Situation {
  readonly pod: JsonObject;
  readonly boosts: readonly JsonObject[];
  readonly limitRanges: readonly JsonObject[];
  readonly quotas: readonly JsonObject[];
}

/** A boost that is meant for every container, so that one container's refusal meets the next one. */
const boostForAll: fc.Arbitrary<JsonObject> = fc
  .tuple(boost, resourcePolicy)
  .map(([manifest, policy]) => ({
    ...manifest,
    selector: {},
    spec: {
      ...objectAt(manifest, 'spec'),
      resourcePolicy: {
        ...objectAt(objectAt(manifest, 'spec'), 'resourcePolicy'),
        containerPolicies: [{ matchContainers: { type: 'RegexName', value: '.*' }, ...policy }],
      },
    },
  }));

const situations: fc.Arbitrary<Situation> = fc.record({
  pod: ruledPod,
  boosts: fc.oneof(
    boosts,
    boost.map((one) => [one]),
    { weight: 2, arbitrary: boostForAll.map((one) => [one]) },
  ),
  limitRanges,
  quotas,
});

function decide(situation: Situation): BoostDecision {
  return decideBoost({
    ...situation,
    boosts: situation.boosts.map(compileBoost),
    namespace: 'default',
    now: NOON,
  });
}

function removesLimit(decision: BoostDecision): boolean {
  const containers = decision.kind === 'Boost' ? decision.containers : [];
  return containers.some(({ from, to }) => from.limit !== undefined && to.limit === undefined);
}

function branchOf(decision: BoostDecision): string {
  return decision.kind === 'Skip' ? decision.code : decision.kind;
}

const inits = (pod: JsonObject) => containersOf(pod, 'initContainers');

describe('decideBoost in a namespace with rules', () => {
  // Two people who read the same rules must come to the same pod and the same reason.
  it('answers what a second, simpler model of the rules answers', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(situations, (situation) => {
        const decision = decide(situation);
        const expected = simpleBoost(situation);
        const besides = decision.kind === 'Boost' ? decision.skipped : [];
        tally.count(
          branchOf(decision),
          ...besides.map(({ code }) => `Boost beside ${code}`),
          ...(removesLimit(decision) ? ['limit removed'] : []),
        );
        expect(branchOf(decision)).toBe(expected.kind === 'Skip' ? expected.code : 'Boost');
        if (expected.kind === 'Skip') return;
        expect(decision.boost?.name).toBe(expected.boost);
        expect(containersOf(applied(situation.pod, decision.patch))).toEqual(expected.containers);
      }),
      runs(),
    );
    tally.expectShares({
      Boost: 0.1,
      NoPolicy: 0.02,
      NoBoostMatches: 0.05,
      QuotaPresent: 0.02,
      LimitRangeExceeded: 0.02,
      'Boost beside LimitRangeExceeded': 0.001,
      'limit removed': 0.01,
    });
  });

  // LimitRanger and ResourceQuota judge after the webhook: a refusal would be the boost's fault.
  it('leaves a pod that the API server takes one that it takes', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(situations, (situation) => {
        const { pod } = situation;
        const isTaken = (one: JsonObject) =>
          simpleLimitRangeAllows(situation.limitRanges, containersOf(one), inits(one));
        const decision = decide(situation);
        const after = applied(pod, decision.patch);
        const tracked = simpleTracked(situation.quotas, pod);
        const isRuled = situation.limitRanges.length > 0;
        tally.count(
          decision.kind,
          ...(isRuled && decision.kind === 'Boost' ? ['Boost under a LimitRange'] : []),
          ...(tracked.requests && decision.kind === 'Boost' ? ['Boost under a quota'] : []),
        );
        if (isTaken(pod)) expect(isTaken(after)).toBe(true);
        const values = (one: JsonObject, key: 'request' | 'limit') =>
          containersOf(one).map((container) => container[key]);
        if (tracked.requests) expect(values(after, 'request')).toEqual(values(pod, 'request'));
        if (tracked.limits) expect(values(after, 'limit')).toEqual(values(pod, 'limit'));
        const qosOf = (one: JsonObject) => simpleQos([...containersOf(one), ...inits(one)]);
        expect(qosOf(after)).toBe(qosOf(pod));
        expect(decide({ ...situation, pod: after }).patch).toEqual([]);
      }),
      runs(),
    );
    tally.expectShares({
      Boost: 0.1,
      'Boost under a LimitRange': 0.01,
      'Boost under a quota': 0.005,
    });
  });
});

/** What the pod has once its boost, which nobody knows any more, has been taken back. */
function reverted(pod: JsonObject): JsonObject {
  const before = stored(pod);
  const decision = decideRevert({
    pod: before,
    boost: { kind: 'Absent', since: 0 },
    now: NOON,
    settings: LIFE_SETTINGS,
  });
  return decision.kind === 'Resize' ? applied(before, decision.patch) : before;
}

describe('decideBoost of a pod that carries a record', () => {
  const allPods = boost.map((one) => ({ ...one, selector: {} }));

  // People copy manifests of running pods: into namespaces with other rules, and after the boost was edited.
  it('copied with it, or called again after an edit: settles at once, and gives back the first originals', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(
        situations,
        allPods,
        fc.option(allPods, { nil: undefined, freq: 2 }),
        (situation, first, other) => {
          const free = { ...situation, boosts: [first], limitRanges: [], quotas: [] };
          const copied = applied(situation.pod, decide(free).patch);
          const second = { ...situation, pod: copied, boosts: [other ?? first] };
          const decision = decide(second);
          const after = applied(copied, decision.patch);
          tally.count(`${other === undefined ? 'same' : 'other'} ${branchOf(decision)}`);
          expect(decide({ ...second, pod: after }).patch).toEqual([]);
          expect(resourcesOf(reverted(after))).toEqual(resourcesOf(situation.pod));
        },
      ),
      runs(),
    );
    tally.expectShares({
      'same AlreadyBoosted': 0.05,
      'same QuotaPresent': 0.01,
      'same LimitRangeExceeded': 0.01,
      'other Boost': 0.02,
    });
  });

  // The record is the user's to write: it must neither multiply CPU nor keep the webhook busy.
  it('forged: settles at once, is no boost of a boost, and never raises on the way back', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(situations, allPods, forgedRecord, (situation, only, record) => {
        const boosted = { ...situation, boosts: [only] };
        const pod = marked(situation.pod, aptFor(situation.pod, record));
        const highest = containersOf(pod).map((container) => simpleRaise(only, container));
        const decision = decide({ ...boosted, pod });
        const after = applied(pod, decision.patch);
        tally.count(branchOf(decision));
        expect(decide({ ...boosted, pod: after }).patch).toEqual([]);
        for (const [index, is] of containersOf(after).entries()) {
          const most = highest[index];
          expect(is.request ?? 0).toBeLessThanOrEqual(most?.request ?? 0);
          // One that a record says was removed may come back: less than none.
          expect(is.limit ?? 0).toBeLessThanOrEqual(most?.limit ?? Infinity);
        }
        expect(raisedContainers(after, reverted(after))).toEqual([]);
      }),
      { ...runs(), examples: [ORIGINAL_IN_OTHER_WORDS, ORIGINAL_OF_ANOTHER_CLASS, FINER_ORIGINAL] },
    );
    tally.expectShares({ Boost: 0.05, NoPolicy: 0.05, NothingToRaise: 0.02 });
  });
});

/** Found with seed -1163528224: the record took the words of its original over the pod's. */
const ORIGINAL_IN_OTHER_WORDS: [Situation, JsonObject, JsonObject] = [
  {
    pod: {
      metadata: { name: 'app', namespace: 'default' },
      spec: {
        containers: [
          { name: 'web', resources: { requests: { cpu: '1m' } } },
          { name: 'app', resources: { requests: { cpu: '250m' }, limits: { cpu: '1' } } },
        ],
      },
    },
    boosts: [],
    limitRanges: [],
    quotas: [],
  },
  {
    metadata: { name: 'a', namespace: 'default' },
    selector: {},
    spec: {
      resourcePolicy: {
        containerPolicies: [
          { containerName: 'app', fixedResources: { requests: '1m', limits: '1001m' } },
        ],
      },
      durationPolicy: { fixedDuration: { unit: 'Seconds', value: 1 } },
    },
  },
  { initCPURequests: { app: '0.25' } },
];

/** Found with seed -665192571: the record says that a Guaranteed pod was Burstable, and so it becomes. */
const ORIGINAL_OF_ANOTHER_CLASS: [Situation, JsonObject, JsonObject] = [
  {
    pod: {
      metadata: { name: 'app', namespace: 'default' },
      spec: {
        containers: [
          {
            name: 'web',
            resources: {
              requests: { cpu: '500m', memory: '64Mi' },
              limits: { cpu: '500m', memory: '64Mi' },
            },
          },
        ],
      },
    },
    boosts: [],
    limitRanges: [],
    quotas: [],
  },
  {
    metadata: { name: 'a', namespace: 'default' },
    selector: {},
    spec: {
      resourcePolicy: {
        containerPolicies: [
          { containerName: 'web', fixedResources: { requests: '500m', limits: '1' } },
        ],
      },
      durationPolicy: { fixedDuration: { unit: 'Seconds', value: 1 } },
    },
  },
  { initCPURequests: { web: '1m' } },
];

/** Found with seed 1336936562: a half that is held by a quota kept an original which no pod can have. */
const FINER_ORIGINAL: [Situation, JsonObject, JsonObject] = [
  {
    pod: {
      metadata: { name: 'app', namespace: 'default' },
      spec: {
        containers: [
          { name: 'app', resources: { requests: { cpu: '1m' }, limits: { cpu: '100m' } } },
        ],
      },
    },
    boosts: [],
    limitRanges: [],
    quotas: [{ spec: { hard: { 'requests.cpu': '10' } } }],
  },
  {
    metadata: { name: 'a', namespace: 'default' },
    selector: {},
    spec: {
      resourcePolicy: {
        containerPolicies: [{ containerName: 'app', percentageIncrease: { value: 1 } }],
      },
      durationPolicy: { fixedDuration: { unit: 'Seconds', value: 1 } },
    },
  },
  { initCPURequests: { app: '500u' } },
];
