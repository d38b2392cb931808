/** The whole life of one pod whose boost comes later, under any order of events, controllers killed at any step. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileBoost, decideBoost, decideRaise, readPod } from '../../src/boost-engine';
import type { RaiseDecision } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { aBoost, aContainer, aPod } from '../support/builders';
import {
  boost,
  boosts,
  damaged,
  forgedRecord,
  marked,
  NOON,
  pod,
  progress,
  resourcePolicy,
  someBoosts,
  stored,
} from '../support/engineArbitraries';
import type { Progress } from '../support/engineArbitraries';
import { applied, appliedOrRefused, loweredContainers } from '../support/engineLaws';
import { runs, Tally } from '../support/fuzzing';
import { objectAt } from '../support/objectAt';
import { secondOf } from '../support/podWorld';
import { inPlace, RAISE_SETTINGS, RaiseWorld } from '../support/raiseWorld';

const EVENTS: ReadonlyMap<string, (world: RaiseWorld) => void> = new Map(
  Object.entries({
    'the scheduler finds no room': (world: RaiseWorld) => {
      if (world.hasNode) return;
      world.setCondition({
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 Insufficient cpu.',
      });
    },
    'the scheduler binds the pod': (world: RaiseWorld) => {
      if (!world.hasNode) world.bind();
    },
    'the kubelet looks at the pod, and has room': (world: RaiseWorld) => {
      if (world.hasNode) world.kubeletSees('Accepted');
    },
    'the kubelet looks at the pod, and has no room': (world: RaiseWorld) => {
      if (world.hasNode) world.kubeletSees('Deferred');
    },
    'the kubelet looks at the pod, and never will': (world: RaiseWorld) => {
      if (world.hasNode) world.kubeletSees('Infeasible');
    },
    'the pod gets ready': (world: RaiseWorld) => {
      if (world.isTakenIn) world.setCondition({ type: 'Ready', status: 'True' });
    },
    'the pod is not ready any more': (world: RaiseWorld) => {
      if (world.isTakenIn) world.setCondition({ type: 'Ready', status: 'False' });
    },
    'the boost is deleted': (world: RaiseWorld) => {
      world.deleteBoost();
    },
    'a second passes': (world: RaiseWorld) => {
      world.now += 1_000;
    },
    'minutes pass': (world: RaiseWorld) => {
      world.now += 180_000;
    },
    'somebody takes the label off': (world: RaiseWorld) => {
      if (world.hasRecord) world.removeLabel();
    },
  }),
);

/** What happens, and how many calls the controller that sees it lives for. */
const happening = fc.record({
  event: fc.constantFrom(...EVENTS.keys()),
  calls: fc.oneof({ weight: 3, arbitrary: fc.constant(Infinity) }, fc.integer({ min: 0, max: 3 })),
});

const situation = fc
  .record({
    created: pod,
    manifest: boost,
    policy: resourcePolicy,
    priority: fc.constantFrom(0, 1_000),
    admission: fc.constantFrom<'Called' | 'Down'>('Called', 'Down'),
  })
  .map(({ created, manifest, policy, priority, admission }) => ({
    created: { ...created, spec: { ...objectAt(created, 'spec'), priority } },
    manifest: {
      ...manifest,
      metadata: { ...objectAt(manifest, 'metadata'), creationTimestamp: secondOf(NOON) },
      selector: {},
      spec: {
        ...objectAt(manifest, 'spec'),
        resourcePolicy: {
          ...objectAt(objectAt(manifest, 'spec'), 'resourcePolicy'),
          containerPolicies: [{ matchContainers: { type: 'RegexName', value: '.*' }, ...policy }],
        },
      },
    },
    admission,
  }));

describe('the life of a pod whose boost comes later', () => {
  // Whether a crash between two writes loops, loses a marker or boosts twice shows in whole lives only.
  it('has one raise at most, to what admission gives, and ends at its originals, whoever is killed when', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(
        situation,
        fc.array(happening, { maxLength: 20, size: 'max' }),
        ({ created, manifest, admission }, happenings) => {
          fc.pre(RaiseWorld.applies(created, manifest));
          const world = new RaiseWorld(created, manifest, admission);
          world.act(Infinity);
          for (const { event, calls } of happenings) {
            EVENTS.get(event)?.(world);
            world.act(calls);
          }
          world.finish();
          tally.count(...world.kinds, ...(world.raises > 0 ? [`raised ${admission}`] : []));
        },
      ),
      runs(2),
    );
    tally.expectShares({
      'raised Down': 0.1,
      'raised Called': 0.02,
      'Raise MarkPending': 0.1,
      'Raise MarkActive': 0.1,
      'Raise Wait': 0.2,
      'Revert MarkPending': 0.02,
      'Revert MarkActive': 0.005,
      'Revert MarkInfeasible': 0.01,
      'Revert Resize': 0.2,
      'Revert Clear': 0.2,
    });
  });
});

/** A pod as it stands in the API server; most are on a node whose kubelet has taken them in. */
function standingPod(created: JsonObject, since: Progress, kubelet: 'Took it in' | 'Away') {
  const object = withVersion(stored(created, since));
  const containerStatuses = readPod(object).containers.map(({ name, cpu }) => ({
    name,
    allocatedResources: { cpu: cpu.request },
  }));
  const status = { ...objectAt(object, 'status'), containerStatuses };
  return kubelet === 'Away' ? object : { ...object, status };
}

const kubelet = fc.constantFrom<'Took it in' | 'Away'>('Took it in', 'Took it in', 'Away');

const standing = fc
  .tuple(pod, progress, fc.option(forgedRecord, { nil: undefined, freq: 2 }), kubelet)
  .map(([created, since, record, answer]) =>
    standingPod(record === undefined ? created : marked(created, record), since, answer),
  );

function withVersion(object: JsonObject): JsonObject {
  return { ...object, metadata: { ...objectAt(object, 'metadata'), resourceVersion: '7' } };
}

function decide(object: unknown, manifests: readonly JsonObject[], now = NOON): RaiseDecision {
  const settings = { ...RAISE_SETTINGS, catchUpMs: 3_600_000, catchUpBoostLagMs: 3_600_000 };
  return decideRaise({ pod: object, boosts: manifests.map(compileBoost), now, settings });
}

const BOUND_NOW = { type: 'PodScheduled', status: 'True', lastTransitionTime: secondOf(NOON) };

/** Found with seed -1872432379: a container without a name has none that a guard could test. */
const MARKED_WITHOUT_A_NAME: [JsonObject, JsonObject[]] = [
  marked(
    standingPod(
      aPod({ containers: [aContainer({ name: undefined })] }),
      { nodeName: 'node', status: { conditions: [BOUND_NOW] } },
      'Away',
    ),
    { state: 'Pending', boostedCPULimits: { app: '0' } },
  ),
  [aBoost({ name: 'a' })],
];

/** Found with seed -219021344: a list that is no map is taken for an absent one, which a guard then tests. */
const LIST_OF_ANOTHER_KIND: [JsonObject, JsonObject[]] = [
  marked(
    standingPod(
      aPod({
        containers: [{ name: 'web', resources: { requests: [], limits: { cpu: '100m' } } }],
      }),
      { nodeName: 'node', status: { conditions: [BOUND_NOW] } },
      'Away',
    ),
    { state: 'Pending', boostedCPULimits: { app: null } },
  ),
  [aBoost({ name: 'a' })],
];

/** The CPU that the pod would have got at its creation, from boosts that remove no limit. */
function admittedCpu(created: JsonObject, manifests: readonly JsonObject[]): readonly unknown[] {
  const pod = { ...created, spec: { ...objectAt(created, 'spec'), nodeName: '' } };
  const { patch } = decideBoost({
    pod,
    namespace: 'default',
    boosts: manifests.map(inPlace).map(compileBoost),
    now: NOON,
  });
  return readPod(applied(pod, patch)).containers.map(({ cpu }) => cpu);
}

/** Of the boost that `marked` names in the label. */
function isOfLabel(manifest: JsonObject): boolean {
  return objectAt(manifest, 'metadata').name === 'a';
}

/** A forged one, more often one that asks for a raise and contradicts nothing. */
const temptingRecord = fc.oneof(
  forgedRecord,
  forgedRecord.map(({ boostedCPURequests = { app: '60' }, boostedCPULimits }) => ({
    state: 'Pending',
    boostedCPURequests,
    ...(boostedCPULimits === undefined ? {} : { boostedCPULimits }),
  })),
);

describe('a decision about a raise', () => {
  // Pods and records come from strangers: a throw here would stop the loop for all.
  it('never throws, and every patch applies to the pod', () => {
    const reached = new Tally();
    fc.assert(
      fc.property(standing, someBoosts, (object, manifests) => {
        const decision = decide(object, manifests);
        reached.count(decision.kind);
        if ('patch' in decision) applied(object, decision.patch);
      }),
      { ...runs(3), examples: [MARKED_WITHOUT_A_NAME] },
    );
    reached.expectShares({ Leave: 0.3, Wait: 0.02, MarkPending: 0.005, GiveUp: 0.005 });
  });

  // As above, for what the API server could not have delivered; it may refuse the patch, which then does nothing.
  it('never throws nor lowers CPU, whatever is wrong with the pod', () => {
    const reached = new Tally();
    fc.assert(
      fc.property(
        fc.oneof({ weight: 5, arbitrary: damaged(standing) }, fc.jsonValue()),
        someBoosts,
        (object, manifests) => {
          const decision = decide(object, manifests);
          const after = 'patch' in decision ? appliedOrRefused(object, decision.patch) : object;
          reached.count(decision.kind, after === undefined ? 'refused' : 'applied');
          expect(loweredContainers(object, after ?? object)).toEqual([]);
        },
      ),
      { ...runs(), examples: [LIST_OF_ANOTHER_KIND] },
    );
    reached.expectShares({ Leave: 0.3, MarkPending: 0.005, GiveUp: 0.005, applied: 0.95 });
  });

  // The promise of exactly one place that computes CPU: what is missed at admission is not another boost.
  it('leads to the very resources that admission would have given, and to the same QoS class', () => {
    const reached = new Tally();
    fc.assert(
      fc.property(pod, progress, someBoosts, (created, since, manifests) => {
        const object = standingPod(created, since, 'Took it in');
        const mark = decide(object, manifests);
        reached.count(mark.kind);
        if (mark.kind !== 'MarkPending') return;
        const pending = withVersion(applied(object, mark.patch));
        const raise = decide(pending, manifests);
        expect(raise.kind).toBe('Raise');
        const raised = applied(pending, 'patch' in raise ? raise.patch : []);
        expect(readPod(raised).containers.map(({ cpu }) => cpu)).toEqual(
          admittedCpu(created, manifests),
        );
        expect(loweredContainers(object, raised)).toEqual([]);
        expect(decide(raised, manifests).kind).toBe('MarkActive');
      }),
      runs(3),
    );
    reached.expectShares({ MarkPending: 0.05 });
  });

  // A record is an annotation, and anybody can write one: what it names must never be set by that.
  it('raises no pod by what a record says, and none with a record that does not ask for it', () => {
    const reached = new Tally();
    fc.assert(
      fc.property(pod, progress, temptingRecord, boosts, (created, since, record, manifests) => {
        const object = standingPod(marked(created, record), since, 'Took it in');
        const decision = decide(object, manifests);
        reached.count(decision.kind);
        if (record.state !== 'Pending') expect(decision.kind).toBe('Leave');
        // Nothing is raised before the record says what the boost gives.
        expect(decision.kind).not.toBe('Raise');
        if (decision.kind !== 'MarkPending') return;
        const pending = withVersion(applied(object, decision.patch));
        const raise = decide(pending, manifests);
        const raised = applied(pending, 'patch' in raise ? raise.patch : []);
        expect(readPod(raised).containers.map(({ cpu }) => cpu)).toEqual(
          admittedCpu(created, manifests.filter(isOfLabel)),
        );
      }),
      runs(3),
    );
    reached.expectShares({ Leave: 0.3, MarkPending: 0.008, GiveUp: 0.02 });
  });

  // The queue wakes at `until`: a change before that would come late, one that never comes would spin.
  it('changes with time only at the announced moment', () => {
    fc.assert(
      fc.property(
        standing,
        someBoosts,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (object, manifests, share) => {
          const decision = decide(object, manifests);
          if (decision.kind !== 'Wait') return;
          const until = decision.until ?? NOON + 86_400_000;
          const before = NOON + Math.floor((until - 1 - NOON) * share);
          expect(until).toBeGreaterThan(NOON);
          expect(decide(object, manifests, before)).toEqual(decision);
          if (decision.until !== undefined) {
            expect(decide(object, manifests, decision.until)).not.toEqual(decision);
          }
        },
      ),
      runs(3),
    );
  });
});
