/** The whole life of one boosted pod under any order of events: no cluster, but every rule of one. */
import { describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Command } from 'fast-check';
import { BOOST_KEY } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { boost, milli, pod, resourcePolicy } from '../support/engineArbitraries';
import { runs, Tally } from '../support/fuzzing';
import { objectAt } from '../support/objectAt';
import { PodWorld } from '../support/podWorld';

/** The world is its own model: its invariants are told in other words than the engine's. */
type Model = object;

/** What an event needs to be able to happen; otherwise it is passed over. */
type Need = 'Nothing' | 'Node' | 'NoNode' | 'EmptyCache';

abstract class Event implements Command<Model, PodWorld> {
  protected readonly needs: Need = 'Nothing';

  check(): boolean {
    return true;
  }

  run(_model: Model, world: PodWorld): void {
    if (isMet(this.needs, world)) {
      this.happen(world);
      world.act();
    }
    world.expectInvariants();
  }

  protected abstract happen(world: PodWorld): void;
  abstract toString(): string;
}

function isMet(need: Need, world: PodWorld): boolean {
  switch (need) {
    case 'Nothing':
      return true;
    case 'Node':
      return world.hasNode;
    case 'NoNode':
      return !world.hasNode;
    case 'EmptyCache':
      return !world.isCacheFilled;
  }
}

class Scheduled extends Event {
  protected override readonly needs = 'NoNode';

  protected happen(world: PodWorld): void {
    world.bind();
  }
  toString(): string {
    return 'The scheduler binds the pod to a node.';
  }
}

class FoundNoRoom extends Event {
  protected override readonly needs = 'NoNode';

  protected happen(world: PodWorld): void {
    world.setCondition({
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message: '0/3 nodes are available: 3 Insufficient cpu.',
    });
  }
  toString(): string {
    return 'The scheduler finds no node with enough CPU.';
  }
}

class ConditionSet extends Event {
  constructor(
    private readonly type: string,
    private readonly status: 'True' | 'False',
  ) {
    super();
  }
  protected override readonly needs = 'Node';

  protected happen(world: PodWorld): void {
    world.setCondition({ type: this.type, status: this.status });
  }
  toString(): string {
    return `The pod's condition ${this.type} becomes ${this.status}.`;
  }
}

class Restarted extends Event {
  protected override readonly needs = 'Node';

  protected happen(world: PodWorld): void {
    world.setCondition({ type: 'Ready', status: 'False' });
    world.kubeletSees('Accepted');
  }
  toString(): string {
    return 'A container restarts, with what its kubelet has allocated.';
  }
}

class KubeletSaw extends Event {
  constructor(private readonly answer: 'Accepted' | 'Deferred' | 'Infeasible') {
    super();
  }
  protected override readonly needs = 'Node';

  protected happen(world: PodWorld): void {
    world.kubeletSees(this.answer);
  }
  toString(): string {
    return `The kubelet looks at the pod and answers ${this.answer}.`;
  }
}

class ResizedByOther extends Event {
  constructor(
    private readonly position: number,
    private readonly list: 'requests' | 'limits',
    private readonly milli: number,
  ) {
    super();
  }
  protected happen(world: PodWorld): void {
    world.resizeByOther(this.position, this.list, this.milli);
  }
  toString(): string {
    return `Somebody sets the ${this.list} of container ${this.position} to ${this.milli}m.`;
  }
}

class LabelledByOther extends Event {
  protected happen(world: PodWorld): void {
    world.setLabel('team', 'a');
  }
  toString(): string {
    return 'Somebody puts another label on the pod.';
  }
}

class LabelRemoved extends Event {
  protected happen(world: PodWorld): void {
    world.setLabel(BOOST_KEY, undefined);
  }
  toString(): string {
    return "Somebody takes the boost's label off the pod.";
  }
}

class Finished extends Event {
  protected override readonly needs = 'Node';

  protected happen(world: PodWorld): void {
    world.setStatus({ phase: 'Succeeded' });
  }
  toString(): string {
    return 'The pod finishes.';
  }
}

class BoostEdited extends Event {
  constructor(private readonly durationPolicy: JsonObject) {
    super();
  }
  protected happen(world: PodWorld): void {
    if (world.boost === undefined) return;
    const spec = { ...objectAt(world.boost, 'spec'), durationPolicy: this.durationPolicy };
    world.boost = { ...world.boost, spec };
  }
  toString(): string {
    return `Somebody changes the duration to ${JSON.stringify(this.durationPolicy)}.`;
  }
}

class BoostDeleted extends Event {
  protected happen(world: PodWorld): void {
    world.deleteBoost();
  }
  toString(): string {
    return 'Somebody deletes the boost.';
  }
}

class BoostCreated extends Event {
  constructor(private readonly boost: JsonObject) {
    super();
  }
  protected happen(world: PodWorld): void {
    world.boost ??= { ...this.boost, selector: {} };
  }
  toString(): string {
    return 'Somebody creates a boost under the name, if there is none.';
  }
}

class LeaderChanged extends Event {
  protected happen(world: PodWorld): void {
    world.changeLeader();
    world.isCacheFilled = false;
  }
  toString(): string {
    return 'Another controller leads, and does not know the boosts yet.';
  }
}

class CacheFilled extends Event {
  protected override readonly needs = 'EmptyCache';

  protected happen(world: PodWorld): void {
    world.isCacheFilled = true;
    world.changeLeader();
  }
  toString(): string {
    return 'The controller has listed the boosts.';
  }
}

class TimePassed extends Event {
  constructor(private readonly ms: number) {
    super();
  }
  protected happen(world: PodWorld): void {
    world.passTime(this.ms);
  }
  toString(): string {
    return `${this.ms} ms pass.`;
  }
}

const ms = fc.oneof(
  fc.constantFrom(499, 500, 1_000, 4_999, 5_000, 30_000, 60_000, 600_000),
  fc.integer({ min: 1, max: 120_000 }),
);
const conditions = fc.constantFrom('Ready', 'ContainersReady', 'example.com/warm');

const often = 6;
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 2 * often, arbitrary: ms.map((value) => new TimePassed(value)) },
  { weight: often, arbitrary: fc.constant(new Scheduled()) },
  {
    weight: often,
    arbitrary: fc
      .constantFrom<'Accepted' | 'Deferred' | 'Infeasible'>('Accepted', 'Deferred', 'Infeasible')
      .map((answer) => new KubeletSaw(answer)),
  },
  {
    weight: often,
    arbitrary: fc
      .tuple(conditions, fc.constantFrom<'True' | 'False'>('True', 'False'))
      .map(([type, status]) => new ConditionSet(type, status)),
  },
  {
    weight: 3,
    arbitrary: boost.map(
      (other) => new BoostEdited(objectAt(objectAt(other, 'spec'), 'durationPolicy')),
    ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.nat(3), fc.constantFrom<'requests' | 'limits'>('requests', 'limits'), milli)
      .map(([position, list, value]) => new ResizedByOther(position, list, value)),
  },
  { weight: 2, arbitrary: fc.constantFrom(new LeaderChanged(), new CacheFilled()) },
  { weight: 2, arbitrary: fc.constant(new BoostDeleted()) },
  { weight: 1, arbitrary: boost.map((other) => new BoostCreated(other)) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Event>(
      new FoundNoRoom(),
      new Restarted(),
      new LabelledByOther(),
      new LabelRemoved(),
      new Finished(),
    ),
  },
);

const life = fc.commands<Model, PodWorld>([event], { maxCommands: 30, size: 'max' });

const situation = fc
  .record({ pod, boost, policy: resourcePolicy })
  .map(({ pod: created, boost: manifest, policy }) => ({
    created,
    manifest: {
      ...manifest,
      selector: {},
      spec: {
        ...objectAt(manifest, 'spec'),
        resourcePolicy: {
          containerPolicies: [{ matchContainers: { type: 'RegexName', value: '.*' }, ...policy }],
        },
      },
    },
  }));

describe('the life of a boosted pod', () => {
  // Single steps can be right and still lead nowhere: only whole lives show loops, leaks and second resizes.
  it('ends at its originals whatever happens to it, its boost, its kubelet and its controller', () => {
    const tally = new Tally();
    fc.assert(
      fc.property(situation, life, ({ created, manifest }, events) => {
        fc.pre(PodWorld.applies(created, manifest));
        const real = new PodWorld(created, manifest);
        fc.modelRun(() => ({ model: {}, real }), events);
        tally.count(
          ...real.decisions.flatMap((decision) => [
            decision.kind,
            ...('reason' in decision ? [decision.reason] : []),
            ...('why' in decision ? [decision.why] : []),
            ...(decision.kind === 'Wait' ? [`Wait for ${decision.for}`] : []),
            ...(decision.kind === 'Clear' && decision.changedByOther.length > 0
              ? ['ChangedByOther']
              : []),
          ]),
        );
      }),
      runs(),
    );
    tally.expectShares({
      Resize: 0.3,
      Clear: 0.3,
      MarkPending: 0.02,
      'Wait for End': 0.2,
      'Wait for Kubelet': 0.05,
      'Wait for Node': 0.02,
      ChangedByOther: 0.02,
      ConditionMet: 0.02,
      DurationElapsed: 0.02,
      MaximumElapsed: 0.01,
      Unschedulable: 0.02,
      BoostDeleted: 0.01,
      LabelRemoved: 0.05,
      PodFinished: 0.02,
      AlreadyOriginal: 0.005,
      Infeasible: 0.01,
      NotConfirmed: 0.01,
    });
  });
});
