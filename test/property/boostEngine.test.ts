/** The boost engine in namespaces with rules: against a second model, and against LimitRanger and quota. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileBoost, decideBoost } from '../../src/boost-engine';
import type { BoostDecision } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { boost, boosts, NOON } from '../support/engineArbitraries';
import { applied } from '../support/engineLaws';
import { runs, Tally } from '../support/fuzzing';
import { limitRanges, quotas, ruledPod } from '../support/namespaceArbitraries';
import { simpleBoost } from '../support/simpleBoostModel';
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

const situations: fc.Arbitrary<Situation> = fc.record({
  pod: ruledPod,
  boosts: fc.oneof(
    boosts,
    boost.map((one) => [one]),
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
        tally.count(branchOf(decision));
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
