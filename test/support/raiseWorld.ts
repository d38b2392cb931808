/** One pod whose boost comes later, with its API server, kubelet and controllers, in memory. */
import { expect } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  decideRaise,
  decideRevert,
  ENDED_KEY,
  qosClassOf,
  readPod,
  SKIPPED_KEY,
} from '../../src/boost-engine';
import type {
  BoostKnowledge,
  JsonPatch,
  RaiseDecision,
  RevertDecision,
} from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { NOON } from './engineArbitraries';
import { applied } from './engineLaws';
import { listAt, objectAt } from './objectAt';
import { LIFE_SETTINGS, refusal, secondOf, valuesOf } from './podWorld';

export const RAISE_SETTINGS = {
  ...LIFE_SETTINGS,
  catchUpMs: 300_000,
  catchUpBoostLagMs: 30_000,
  catchUpExcludedNamespaces: [],
};

/** More steps without an event or the passing of time would be a hot loop. */
const MAX_STEPS = 10;

export class RaiseWorld {
  now = NOON;
  pod: JsonObject;
  /** Undefined where somebody has deleted it. */
  boost: JsonObject | undefined;
  raises = 0;
  /** Kinds of the decisions, for a share of each. */
  readonly kinds: string[] = [];
  readonly #original: ReadonlyMap<string, number | undefined>;
  readonly #admitted: ReadonlyMap<string, number | undefined>;
  readonly #raised: ReadonlyMap<string, number | undefined>;
  readonly #qosClass: string;
  #absentSince = NOON;
  #waitingSince: number | undefined;
  #wasDone = false;

  /** Whether the boost gives the pod, whatever its priority, anything. */
  static applies(created: JsonObject, boost: JsonObject): boolean {
    const boosts = [compileBoost(boost)];
    const { kind } = decideBoost({ pod: created, namespace: 'default', boosts, now: NOON });
    return kind === 'Boost' || kind === 'Postpone';
  }

  /**
   * @param created the pod as its author wrote it
   * @param admission whether the webhook was called at its creation
   */
  constructor(created: JsonObject, boost: JsonObject, admission: 'Called' | 'Down') {
    this.boost = boost;
    const boosts = [compileBoost(boost)];
    const after = (pod: JsonObject, by = boosts) =>
      applied(pod, decideBoost({ pod, namespace: 'default', boosts: by, now: NOON }).patch);
    const withoutPriority = { ...created, spec: { ...objectAt(created, 'spec'), priority: 0 } };
    this.#original = valuesOf(created);
    this.#admitted = valuesOf(after(withoutPriority));
    this.#raised = valuesOf(after(withoutPriority, [compileBoost(inPlace(boost))]));
    const admitted = admission === 'Called' ? after(created) : created;
    this.pod = {
      ...admitted,
      metadata: {
        ...objectAt(admitted, 'metadata'),
        uid: 'uid-1',
        resourceVersion: '1',
        generation: 1,
        creationTimestamp: secondOf(NOON),
      },
      status: { phase: 'Pending' },
    };
    this.#qosClass = this.#classNow();
  }

  get hasNode(): boolean {
    return readPod(this.pod).nodeName !== undefined;
  }

  get isTakenIn(): boolean {
    return listAt(objectAt(this.pod, 'status'), 'containerStatuses').length > 0;
  }

  get hasRecord(): boolean {
    return readPod(this.pod).annotations?.has(BOOST_KEY) === true;
  }

  setStatus(fields: JsonObject): void {
    this.#store({ ...this.pod, status: { ...objectAt(this.pod, 'status'), ...fields } });
  }

  setCondition(condition: JsonObject): void {
    const others = listAt(objectAt(this.pod, 'status'), 'conditions').filter(
      ({ type }) => type !== condition.type,
    );
    this.setStatus({
      conditions: [...others, { lastTransitionTime: secondOf(this.now), ...condition }],
    });
  }

  bind(): void {
    this.#store({ ...this.pod, spec: { ...objectAt(this.pod, 'spec'), nodeName: 'node' } });
    this.setCondition({ type: 'PodScheduled', status: 'True' });
  }

  /** The kubelet looks at the pod as it is. */
  kubeletSees(answer: 'Accepted' | 'Deferred' | 'Infeasible'): void {
    const { generation, containers, allocatedCpu } = readPod(this.pod);
    const status = objectAt(this.pod, 'status');
    const conditions = listAt(status, 'conditions').filter(
      ({ type }) => type !== 'PodResizePending',
    );
    this.setStatus({ conditions, observedGeneration: generation });
    const needsNothing = containers.every(
      ({ name, cpu }) => allocatedCpu.get(name) === cpu.request,
    );
    if (this.isTakenIn && answer !== 'Accepted' && !needsNothing) {
      this.setCondition({ type: 'PodResizePending', status: 'True', reason: answer });
      return;
    }
    this.setStatus({
      phase: 'Running',
      containerStatuses: containers.map(({ name, cpu }) => ({
        name,
        allocatedResources: cpu.request === undefined ? {} : { cpu: cpu.request },
      })),
    });
  }

  removeLabel(): void {
    const metadata = objectAt(this.pod, 'metadata');
    const labels = Object.fromEntries(
      Object.entries(objectAt(metadata, 'labels')).filter(([key]) => key !== BOOST_KEY),
    );
    this.#store({ ...this.pod, metadata: { ...metadata, labels } });
  }

  deleteBoost(): void {
    if (this.boost !== undefined) this.#absentSince = this.now;
    this.boost = undefined;
  }

  /**
   * A controller takes the pod as far as it gets, and is killed after so many calls; the next one has
   * nothing in its memory.
   */
  act(calls: number): void {
    if (calls !== Infinity) this.#waitingSince = undefined;
    for (let steps = 0; steps < Math.min(calls, MAX_STEPS + 1); steps += 1) {
      expect(steps).toBeLessThan(MAX_STEPS);
      const step = this.#nextStep();
      if (step === undefined) return;
      this.#send(step);
      this.#expectLegal();
    }
  }

  /** Everything ends: the boost is deleted, its grace over, and the kubelet does what it is told. */
  finish(): void {
    this.deleteBoost();
    this.now += LIFE_SETTINGS.boostDeletedGraceMs;
    if (!this.hasNode) this.bind();
    for (let round = 0; round < 4; round += 1) {
      this.kubeletSees('Accepted');
      this.act(Infinity);
    }
    expect(valuesOf(this.pod)).toEqual(this.#original);
    expect(this.hasRecord).toBe(false);
  }

  #nextStep(): { readonly kind: string; readonly patch: JsonPatch } | undefined {
    const revert = this.#revert();
    expect(this.#revert()).toEqual(revert);
    this.kinds.push(`Revert ${revert.kind}`);
    if ('patch' in revert) return revert;
    if (revert.kind === 'Wait' && revert.for === 'Kubelet') this.#waitingSince ??= this.now;
    const raise = this.#raise();
    expect(this.#raise()).toEqual(raise);
    this.kinds.push(`Raise ${raise.kind}`);
    const isAsked = revert.kind === 'Nothing' || (revert.kind === 'Wait' && revert.for === 'Raise');
    if (!('patch' in raise)) return undefined;
    // Asked out of turn, it has nothing to say that would undo the other.
    if (!isAsked) expect(raise.kind).not.toBe('Raise');
    return isAsked ? raise : undefined;
  }

  #revert(): RevertDecision {
    const boost: BoostKnowledge =
      this.boost === undefined
        ? { kind: 'Absent', since: this.#absentSince }
        : { kind: 'Present', boost: compileBoost(this.boost) };
    return decideRevert({
      pod: this.pod,
      boost,
      raising: 'On',
      ...(this.#waitingSince === undefined ? {} : { waitingSince: this.#waitingSince }),
      now: this.now,
      settings: LIFE_SETTINGS,
    });
  }

  #raise(): RaiseDecision {
    return decideRaise({
      pod: this.pod,
      boosts: this.boost === undefined ? [] : [compileBoost(this.boost)],
      now: this.now,
      settings: RAISE_SETTINGS,
    });
  }

  #send({ kind, patch }: { readonly kind: string; readonly patch: JsonPatch }): void {
    const before = this.pod;
    const after = applied(before, patch);
    if (kind === 'Raise' || kind === 'Resize') {
      expect(refusal(before, after)).toBeUndefined();
      if (kind === 'Raise') {
        this.raises += 1;
        expect(this.isTakenIn).toBe(true);
        expect(this.#wasDone).toBe(false);
        expect(valuesOf(before)).toEqual(this.#original);
        expect(valuesOf(after)).toEqual(this.#raised);
      } else {
        expect(valuesOf(after)).toEqual(this.#original);
      }
      this.#store(after, 'NewGeneration');
    } else {
      expect(after.spec).toEqual(before.spec);
      this.#store(after);
    }
  }

  #expectLegal(): void {
    const values = valuesOf(this.pod);
    expect([this.#original, this.#admitted, this.#raised]).toContainEqual(values);
    expect(this.#classNow()).toBe(this.#qosClass);
    expect(this.raises).toBeLessThanOrEqual(1);
    const { annotations } = readPod(this.pod);
    const isDone = annotations?.has(ENDED_KEY) === true || annotations?.has(SKIPPED_KEY) === true;
    // A pod without a record has its own CPU, and one that is done with is never marked again.
    if (!this.hasRecord) expect(values).toEqual(this.#original);
    if (this.#wasDone) expect(this.hasRecord).toBe(false);
    this.#wasDone ||= isDone && !this.hasRecord;
  }

  #classNow(): string {
    const { containers, initContainers } = readPod(this.pod);
    return qosClassOf([...containers, ...initContainers]);
  }

  #store(after: JsonObject, spec: 'NewGeneration' | 'SameGeneration' = 'SameGeneration'): void {
    const { generation = 1, resourceVersion } = readPod(this.pod);
    this.pod = {
      ...after,
      metadata: {
        ...objectAt(after, 'metadata'),
        generation: spec === 'NewGeneration' ? generation + 1 : generation,
        resourceVersion: String(Number(resourceVersion) + 1),
      },
    };
  }
}

/** The boost as a pod gets it that is there: a resize cannot take a limit away, so it is raised. */
export function inPlace(boost: JsonObject): JsonObject {
  const spec = objectAt(boost, 'spec');
  const resourcePolicy = objectAt(spec, 'resourcePolicy');
  const cpuLimits = resourcePolicy.cpuLimits === 'Keep' ? 'Keep' : 'Raise';
  return { ...boost, spec: { ...spec, resourcePolicy: { ...resourcePolicy, cpuLimits } } };
}
