/** One boosted pod with its API server, kubelet and controller, in memory: for tests of its whole life. */
import { expect } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  decideRevert,
  readPod,
} from '../../src/boost-engine';
import type {
  BoostDecision,
  BoostKnowledge,
  JsonPatch,
  RevertDecision,
  RevertSettings,
} from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { canonicalCpu, NOON } from './engineArbitraries';
import { applied } from './engineLaws';
import { listAt, objectAt } from './objectAt';
import { containersOf, simpleQos } from './simplePod';

export const LIFE_SETTINGS: RevertSettings = {
  maximumBoostMs: 600_000,
  unschedulableGraceMs: 500,
  boostDeletedGraceMs: 5_000,
  confirmTimeoutMs: 30_000,
  limitRangeDefaults: 'Avoid',
};

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime: string;
}

type Values = ReadonlyMap<string, number | undefined>;

/** More steps without an event or the passing of time would be a hot loop. */
const MAX_STEPS = 4;

export class PodWorld {
  now = NOON;
  /** Undefined where somebody has deleted it. */
  boost: JsonObject | undefined;
  /** A controller that has just begun to lead does not know the boosts yet. */
  isCacheFilled = true;
  pod: JsonObject;
  /** Containers in which somebody else has set a value. */
  readonly foreign = new Set<string>();
  readonly decisions: RevertDecision[] = [];
  resizes = 0;
  readonly #original: Values;
  readonly #boosted: Values;
  #absentSince = 0;
  #waitingSince: number | undefined;
  #wakeAt: number | undefined;
  #hasEnded = false;

  static applies(pod: JsonObject, boost: JsonObject): boolean {
    return admitted(pod, boost).kind === 'Boost';
  }

  /** @param pod as it was created, before admission */
  constructor(pod: JsonObject, boost: JsonObject) {
    this.boost = boost;
    const boosted = applied(pod, admitted(pod, boost).patch);
    const metadata = {
      ...objectAt(boosted, 'metadata'),
      uid: 'uid-1',
      generation: 1,
      creationTimestamp: secondOf(NOON),
    };
    this.pod = { ...boosted, metadata, status: { phase: 'Pending' } };
    this.#original = valuesOf(pod);
    this.#boosted = valuesOf(this.pod);
  }

  get hasNode(): boolean {
    return Boolean(objectAt(this.pod, 'spec').nodeName);
  }

  get hasRecord(): boolean {
    return objectAt(objectAt(this.pod, 'metadata'), 'annotations')[BOOST_KEY] !== undefined;
  }

  setStatus(fields: JsonObject): void {
    this.pod = { ...this.pod, status: { ...objectAt(this.pod, 'status'), ...fields } };
  }

  setCondition(condition: Omit<Condition, 'lastTransitionTime'>): void {
    const others = listAt(objectAt(this.pod, 'status'), 'conditions').filter(
      ({ type }) => type !== condition.type,
    );
    const lastTransitionTime = secondOf(this.now);
    this.setStatus({ conditions: [...others, { ...condition, lastTransitionTime }] });
  }

  bind(): void {
    this.pod = { ...this.pod, spec: { ...objectAt(this.pod, 'spec'), nodeName: 'node' } };
    this.setCondition({ type: 'PodScheduled', status: 'True' });
  }

  setLabel(key: string, value: string | undefined): void {
    const metadata = objectAt(this.pod, 'metadata');
    const others = Object.entries(objectAt(metadata, 'labels')).filter(([other]) => other !== key);
    const labels = Object.fromEntries(value === undefined ? others : [...others, [key, value]]);
    this.pod = { ...this.pod, metadata: { ...metadata, labels } };
  }

  /** The kubelet has seen the pod as it is, and takes the resize, or says why not. */
  kubeletSees(answer: 'Accepted' | 'Deferred' | 'Infeasible'): void {
    const status = objectAt(this.pod, 'status');
    const conditions = listAt(status, 'conditions').filter(
      ({ type }) => type !== 'PodResizePending',
    );
    const { generation, containers } = readPod(this.pod);
    this.setStatus({ conditions, observedGeneration: generation });
    if (answer !== 'Accepted' && status.containerStatuses !== undefined) {
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

  /** Somebody else's resize; nothing happens where the API server refuses it. */
  resizeByOther(position: number, list: 'requests' | 'limits', milli: number): void {
    const containers = readPod(this.pod).containers;
    const container = containers[position % containers.length];
    if (container?.[list]?.get('cpu') === undefined) return;
    const path = `/spec/containers/${container.index}/resources/${list}/cpu`;
    const after = applied(this.pod, [{ op: 'replace', path, value: canonicalCpu(milli) }]);
    if (refusal(this.pod, after) !== undefined) return;
    this.foreign.add(container.name);
    this.#store(after);
  }

  deleteBoost(): void {
    if (this.boost !== undefined) this.#absentSince = this.now;
    this.boost = undefined;
  }

  /** What a leader has in memory is lost; what it sees, it sees for the first time. */
  changeLeader(): void {
    this.#waitingSince = undefined;
    this.#absentSince = this.now;
  }

  /** The controller is woken at the announced moments, and looks once more at the end for nothing. */
  passTime(ms: number): void {
    const end = this.now + ms;
    while (this.#wakeAt !== undefined && this.#wakeAt <= end) {
      this.now = this.#wakeAt;
      this.act();
    }
    const last = this.decisions.at(-1);
    this.now = end;
    if (last?.kind === 'Wait') expect(this.#decide()).toEqual(last);
  }

  /** What the controller does on an event: steps until there is nothing to do right now. */
  act(): void {
    this.#hasEnded ||= this.#shouldEnd();
    this.#wakeAt = undefined;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const decision = this.#decide();
      expect(this.#decide()).toEqual(decision);
      this.decisions.push(decision);
      if ('patch' in decision) {
        this.#send(decision);
        continue;
      }
      switch (decision.kind) {
        case 'Wait':
          if (decision.for === 'Kubelet') this.#waitingSince ??= this.now;
          this.#wakeAt = decision.until;
          expect(decision.until ?? Infinity).toBeGreaterThan(this.now);
          return;
        case 'Nothing':
        case 'Stuck':
          return;
      }
    }
    throw new Error('the controller does not come to rest');
  }

  #send(step: Extract<RevertDecision, { readonly patch: JsonPatch }>): void {
    const after = applied(this.pod, step.patch);
    if (step.kind === 'Resize') {
      expect(refusal(this.pod, after)).toBeUndefined();
      this.resizes += 1;
      this.#store(after);
    } else {
      expect(after.spec).toEqual(this.pod.spec);
      this.pod = after;
    }
  }

  /** What must hold whenever the controller rests. */
  expectInvariants(): void {
    const isBoosted = this.hasRecord && !this.#hasEnded;
    const isOurs = ([key]: readonly [string, number | undefined]) =>
      !this.foreign.has(key.split(' ')[0] ?? '');
    expect([...valuesOf(this.pod)].filter(isOurs)).toEqual(
      [...(isBoosted ? this.#boosted : this.#original)].filter(isOurs),
    );
    if (this.foreign.size > 0) return;
    expect(this.resizes).toBeLessThanOrEqual(1);
    const isDone = this.#hasEnded && this.hasNode && this.#isKubeletIdle();
    if (isDone) expect(this.hasRecord).toBe(false);
  }

  #decide(): RevertDecision {
    return decideRevert({
      pod: this.pod,
      boost: this.#knowledge(),
      ...(this.#waitingSince === undefined ? {} : { waitingSince: this.#waitingSince }),
      now: this.now,
      settings: LIFE_SETTINGS,
    });
  }

  #knowledge(): BoostKnowledge {
    if (!this.isCacheFilled) return { kind: 'Unknown' };
    return this.boost === undefined
      ? { kind: 'Absent', since: this.#absentSince }
      : { kind: 'Present', boost: compileBoost(this.boost) };
  }

  /** The ends of a boost, told once more from the design. */
  #shouldEnd(): boolean {
    const { labels, phase } = readPod(this.pod);
    return (
      labels?.has(BOOST_KEY) !== true ||
      phase === 'Succeeded' ||
      this.now >= this.#latestEnd() ||
      (this.isCacheFilled && this.#endsByBoost())
    );
  }

  /** The end that holds whatever the boost says, epoch milliseconds. */
  #latestEnd(): number {
    const scheduled = readPod(this.pod).conditions.get('PodScheduled');
    const since = scheduled?.lastTransitionTime ?? NOON;
    const { maximumBoostMs, unschedulableGraceMs } = LIFE_SETTINGS;
    if (scheduled?.status === 'True') return since + maximumBoostMs;
    const grace = scheduled === undefined ? Infinity : since + unschedulableGraceMs;
    return Math.min(grace, NOON + maximumBoostMs);
  }

  #endsByBoost(): boolean {
    if (this.boost === undefined) {
      return this.now >= this.#absentSince + LIFE_SETTINGS.boostDeletedGraceMs;
    }
    const { conditions } = readPod(this.pod);
    const duration = objectAt(objectAt(this.boost, 'spec'), 'durationPolicy');
    const { type, status } = objectAt(duration, 'podCondition');
    if (typeof type === 'string' && conditions.get(type)?.status === status) return true;
    const { unit, value } = objectAt(duration, 'fixedDuration');
    const fixedMs = Number(value) * (unit === 'Minutes' ? 60_000 : 1_000);
    const scheduled = conditions.get('PodScheduled');
    return (
      scheduled?.status === 'True' && this.now >= (scheduled.lastTransitionTime ?? 0) + fixedMs
    );
  }

  #isKubeletIdle(): boolean {
    const { generation, observedGeneration, conditions } = readPod(this.pod);
    return observedGeneration === generation && !conditions.has('PodResizePending');
  }

  #store(after: JsonObject): void {
    const generation = (readPod(this.pod).generation ?? 0) + 1;
    this.pod = { ...after, metadata: { ...objectAt(after, 'metadata'), generation } };
  }
}

function admitted(pod: JsonObject, boost: JsonObject): BoostDecision {
  return decideBoost({ pod, namespace: 'default', boosts: [compileBoost(boost)], now: NOON });
}

export function secondOf(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

/** Milli-cores by container and list; what is absent is undefined. */
export function valuesOf(pod: JsonObject): Values {
  return new Map(
    containersOf(pod).flatMap(({ name, request, limit }) => [
      [`${name} requests`, request] as const,
      [`${name} limits`, limit] as const,
    ]),
  );
}

/** Why the API server would not take the resize: ValidatePodResize. */
export function refusal(before: JsonObject, after: JsonObject): string | undefined {
  const qosOf = (pod: JsonObject) =>
    simpleQos([...containersOf(pod), ...containersOf(pod, 'initContainers')]);
  if (qosOf(before) !== qosOf(after)) return 'the QoS class would change';
  const [was, is] = [valuesOf(before), valuesOf(after)];
  for (const [key, value] of was) {
    if (value !== undefined && is.get(key) === undefined) return `${key} would be removed`;
  }
  return containersOf(after).some(({ request, limit }) => (request ?? 0) > (limit ?? Infinity))
    ? 'a request would be above its limit'
    : undefined;
}
