/** Decides, for a pod that is there, whether it gets the boost now that it did not get at its creation. */
import type { BoostIdentity, CompiledBoost, ValidBoost } from './boost';
import { boostContainers } from './containerBoost';
import type { BoostedContainer } from './containerBoost';
import {
  hasRoomForRecord,
  markOperations,
  recordedContainers,
  selectBoost,
  skipCodeOf,
} from './decideBoost';
import { boostEnd } from './durationPolicy';
import type { BoostEnd, EndSettings } from './durationPolicy';
import { jsonPointer } from './jsonPatch';
import type { JsonPatch } from './jsonPatch';
import { BOOST_KEY, ENDED_KEY, SKIPPED_KEY } from './keys';
import { addsDefaults, readLimitRange } from './limitRange';
import { readPod } from './pod';
import type { CpuResources, PodFacts } from './pod';
import { isLeftAsGuaranteed, STORED_POD_CHECKS } from './podChecks';
import type { GuaranteedPods } from './podChecks';
import { CONTAINER_SKIPS, POD_SKIPS, RAISE_SKIPS } from './reasons';
import type { ContainerSkipCode, PodSkipCode, RaiseCause, RaiseSkipCode } from './reasons';
import { formatRecord, parseRecord, tellsBoostedValues } from './record';
import type { BoostRecord } from './record';
import { isAdmitted, isFinished, isResizing } from './resizeProgress';
import { clearPatch, planRevert, resizePatch, shapeAfter, statePatch } from './revertPatch';
import type { ContainerChanges, CpuChange } from './revertPatch';
import { matchesSelector } from './selector';

export interface RaiseSettings extends EndSettings {
  /** Pods of this age and older are not caught up, in milliseconds; 0 catches up none. */
  readonly catchUpMs: number;
  /** How much younger than a pod its boost may be for the pod to be caught up, in milliseconds. */
  readonly catchUpBoostLagMs: number;
  /** Namespaces in which no pod is caught up, since no webhook is called for them either. */
  readonly catchUpExcludedNamespaces: readonly string[];
  /** `Boost` where left out. */
  readonly guaranteed?: GuaranteedPods;
}

export interface RaiseInput {
  /** The pod as the API server delivered it: plain JSON. */
  readonly pod: unknown;
  /** The boosts of its namespace, all of them. */
  readonly boosts: Iterable<CompiledBoost>;
  /** The LimitRanges and ResourceQuotas of the namespace, plain JSON; none where left out. */
  readonly limitRanges?: readonly unknown[];
  readonly quotas?: readonly unknown[];
  /** Names of the boosts that could not be taken back; none where left out. */
  readonly notRevertible?: ReadonlySet<string>;
  /** Why the API server has refused to raise this very pod, where it has. */
  readonly refusal?: 'NoRoomOnNode' | 'RaiseRefused';
  /** Epoch milliseconds. */
  readonly now: number;
  readonly settings: RaiseSettings;
}

type SkipCode = PodSkipCode | ContainerSkipCode;

/** Why a pod is not raised. */
export type RaiseLeaveCode = SkipCode | RaiseSkipCode;

const MESSAGES = { ...POD_SKIPS, ...CONTAINER_SKIPS, ...RAISE_SKIPS };

export type RaiseDecision =
  /** The pod is not raised, or has been; judge again on an event. */
  | { readonly kind: 'Leave'; readonly code: RaiseLeaveCode; readonly message: string }
  /**
   * The pod has no node yet, or its kubelet has not taken it in or is at work; judge again on an event,
   * or at `until` (epoch milliseconds).
   */
  | { readonly kind: 'Wait'; readonly for: 'Node' | 'Kubelet'; readonly until?: number }
  /** First step: the record says what the pod has and what it is to get. Send the patch to `pods`. */
  | {
      readonly kind: 'MarkPending';
      readonly cause: RaiseCause;
      readonly boost: BoostIdentity;
      readonly record: BoostRecord;
      readonly patch: JsonPatch;
    }
  /** Second step: send the patch to `pods/resize`. */
  | {
      readonly kind: 'Raise';
      readonly cause: RaiseCause;
      readonly boost: BoostIdentity;
      readonly changes: readonly CpuChange[];
      readonly patch: JsonPatch;
    }
  /** Third step: from now on the pod is a boosted one like any other. Send the patch to `pods`. */
  | { readonly kind: 'MarkActive'; readonly cause: RaiseCause; readonly patch: JsonPatch }
  /** The marked pod is left as it is after all: send the patch to `pods`. */
  | {
      readonly kind: 'GiveUp';
      readonly code: SkipCode;
      readonly message: string;
      readonly patch: JsonPatch;
    };

/**
 * Decides the next step of raising one pod in place; never throws, and the same input always gives
 * the same answer.
 *
 * ```
 * no record ──> MarkPending ──> Pending ──> Raise ──> raised ──> MarkActive ──> decideRevert
 * (catch-up)                       │ Wait for a node and its kubelet
 *                                  └─(not safe, refused)──> GiveUp
 * ```
 *
 * Guarantees:
 * - the values are those that decideBoost gives to the pod at its creation, but for a limit that it
 *   would have removed, which is raised;
 * - a pod that carries a record is raised only if that says `Pending`, one that has had a boost never;
 * - a pod is raised only where its kubelet has taken it in: a larger pod might not be;
 * - every patch fails if the pod, or its record, has changed since.
 */
export function decideRaise(input: RaiseInput): RaiseDecision {
  const facts = readPod(input.pod);
  if (facts.uid === undefined) return leave('MalformedPod');
  if (facts.isTerminating || isFinished(facts)) return leave('PodFinished');
  const recordText = facts.annotations?.get(BOOST_KEY);
  return recordText === undefined ? catchUp(facts, input) : goOn(facts, recordText, input);
}

/** A pod that has nothing of a boost: it may have missed one. */
function catchUp(pod: PodFacts, input: RaiseInput): RaiseDecision {
  const { boosts, now, settings } = input;
  const boost = selectBoost(pod, pod.namespace ?? '', boosts);
  if (boost === undefined) return leave('NoBoostMatches');
  const check = CATCH_UP_CHECKS.find(({ applies }) => applies(pod, boost, input));
  if (check !== undefined) return leave(check.code);
  if (input.notRevertible?.has(boost.name) === true) return leave('NotRevertible');
  const end = boostEnd(pod, boost.duration, settings, now);
  if (isOver(end)) return leave('BoostOver');
  const values = raisedValues(pod, boost, input);
  if (values.kind === 'Skip') return leave(values.code);
  const tooOldAt = (pod.createdAt ?? now) + settings.catchUpMs;
  const obstacle = obstacleOf(pod);
  if (obstacle !== undefined) return wait(obstacle, Math.min(tooOldAt, timeOf(end)));
  const timestamp = new Date(now).toISOString();
  const record = recordOf(pod, boost, values.containers, { reason: 'CatchUp', timestamp });
  return hasRoomForRecord(pod, formatRecord(record))
    ? markPending(pod, boost, record, 'CatchUp')
    : leave('NoRoomForRecord');
}

/** Why a pod without a record has not missed a boost, as an ordered list of small checks. */
const CATCH_UP_CHECKS: readonly {
  readonly code: RaiseSkipCode;
  readonly applies: (pod: PodFacts, boost: ValidBoost, input: RaiseInput) => boolean;
}[] = [
  { code: 'SkippedBefore', applies: (pod) => pod.annotations?.has(SKIPPED_KEY) === true },
  { code: 'HadItsBoost', applies: (pod) => pod.annotations?.has(ENDED_KEY) === true },
  {
    code: 'NamespaceExcluded',
    applies: ({ namespace = '' }, _boost, { settings }) =>
      settings.catchUpExcludedNamespaces.includes(namespace),
  },
  { code: 'Ready', applies: (pod) => pod.conditions.get('Ready')?.status === 'True' },
  {
    code: 'TooOld',
    applies: ({ createdAt = -Infinity }, _boost, { now, settings }) =>
      now >= createdAt + settings.catchUpMs,
  },
  {
    code: 'OlderThanBoost',
    applies: ({ createdAt = -Infinity }, boost, { settings }) =>
      (boost.createdAt ?? Infinity) > createdAt + settings.catchUpBoostLagMs,
  },
];

/** A pod with a record: only `Pending` is a task, begun here, by admission or by decideRevert. */
function goOn(pod: PodFacts, recordText: string, input: RaiseInput): RaiseDecision {
  const parsed = parseRecord(recordText);
  if (parsed.kind === 'Unreadable' || !isToCome(parsed.record)) return leave('HasRecord');
  const boost = boostOf(pod, input.boosts);
  if (boost === undefined) return leave('NoBoostMatches');
  const end = boostEnd(pod, boost.duration, input.settings, input.now);
  if (isOver(end)) return leave('BoostOver');
  if (pod.nodeName === undefined) return wait('Node', timeOf(end));
  return markedStep({ pod, recordText, record: parsed.record, boost, end }, input);
}

interface MarkedPod {
  readonly pod: PodFacts;
  readonly recordText: string;
  readonly record: BoostRecord;
  readonly boost: ValidBoost;
  readonly end: BoostEnd;
}

/** A marked pod on a node. */
function markedStep(
  { pod, recordText, record, boost, end }: MarkedPod,
  input: RaiseInput,
): RaiseDecision {
  const cause = record.reason ?? 'Unschedulable';
  const { changes: raised, changedByOther } = planRevert(pod, recordText, record);
  if (raised.length > 0) {
    const patch = statePatch(pod, recordText, record, { state: 'Active', reason: cause });
    return { kind: 'MarkActive', cause, patch };
  }
  if (input.notRevertible?.has(boost.name) === true) return leave('NotRevertible');
  if (changedByOther.length > 0) return giveUp(pod, recordText, 'ChangedByOther');
  const values = raisedValues(pod, boost, input);
  if (values.kind === 'Skip') return giveUp(pod, recordText, values.code);
  const obstacle = obstacleOf(pod);
  if (obstacle !== undefined) return wait(obstacle, timeOf(end));
  if (input.refusal !== undefined) return giveUp(pod, recordText, input.refusal);
  const { timestamp } = record;
  const fresh = recordOf(pod, boost, values.containers, { reason: cause, timestamp });
  const text = formatRecord(fresh);
  if (!hasRoomForRecord(pod, text)) return giveUp(pod, recordText, 'NoRoomForRecord');
  // Nothing is set but what the boost gives now, whatever a record says that anybody can write.
  if (text !== recordText) return markPending(pod, boost, fresh, cause);
  const plans = values.containers.flatMap((container) => changesOf(pod, container));
  const changes = plans.flatMap((plan) => plan.changes);
  return { kind: 'Raise', cause, boost, changes, patch: resizePatch(pod, recordText, plans) };
}

/** One that names no values was written by another operator, whatever its state. */
function isToCome(record: BoostRecord): boolean {
  return record.state === 'Pending' && tellsBoostedValues(record);
}

/** The boost that the label names; decideRevert ends the boost of a pod whose boost is gone. */
function boostOf(pod: PodFacts, boosts: Iterable<CompiledBoost>): ValidBoost | undefined {
  const name = pod.labels?.get(BOOST_KEY);
  for (const boost of boosts) {
    if (boost.kind === 'Invalid' || boost.name !== name) continue;
    if (boost.namespace === pod.namespace) return boost;
  }
  return undefined;
}

/** A pod without a node has its boost still to come: that no node had room for it is no end here. */
function isOver(end: BoostEnd): boolean {
  return end.kind === 'Ended' && end.reason !== 'Unschedulable';
}

function timeOf(end: BoostEnd): number {
  return end.kind === 'Ended' ? Infinity : (end.until ?? Infinity);
}

/** What the pod has to wait for before it may be touched. */
function obstacleOf(pod: PodFacts): 'Node' | 'Kubelet' | undefined {
  if (pod.nodeName === undefined) return 'Node';
  return isAdmitted(pod) && !isResizing(pod) ? undefined : 'Kubelet';
}

type RaisedValues =
  | { readonly kind: 'Raise'; readonly containers: readonly BoostedContainer[] }
  | { readonly kind: 'Skip'; readonly code: SkipCode };

/** What admission would give to the pod, all of whose CPU is its own; no limit is removed. */
function raisedValues(
  pod: PodFacts,
  boost: ValidBoost,
  { limitRanges = [], quotas = [], settings }: RaiseInput,
): RaisedValues {
  const check = STORED_POD_CHECKS.find(({ applies }) => applies(pod));
  if (check !== undefined) return { kind: 'Skip', code: check.code };
  if (isLeftAsGuaranteed(pod, settings.guaranteed)) return { kind: 'Skip', code: 'GuaranteedPod' };
  if (!matchesSelector(boost.selector, pod.labels)) return { kind: 'Skip', code: 'NoBoostMatches' };
  const limitRange = limitRanges.flatMap(readLimitRange);
  // A resize cannot take a limit away.
  const cpuLimits = boost.cpuLimits === 'Keep' ? 'Keep' : 'Raise';
  const constraints = { limitRange, quotas, cpuLimits } as const;
  const { boosted, skipped } = boostContainers(pod, boost, undefined, constraints);
  if (boosted.length === 0) return { kind: 'Skip', code: skipCodeOf(skipped) };
  const changes = boosted
    .flatMap((container) => changesOf(pod, container))
    .flatMap((plan) => plan.changes);
  return addsDefaults(limitRange, shapeAfter(pod, changes))
    ? { kind: 'Skip', code: 'LimitRangeWouldChangePod' }
    : { kind: 'Raise', containers: boosted };
}

function changesOf(pod: PodFacts, { index, name, from, to }: BoostedContainer): ContainerChanges[] {
  const container = pod.containers[index];
  if (container === undefined) return [];
  const change = (resource: CpuChange['resource'], key: keyof CpuResources): CpuChange[] => {
    const value = to[key];
    return value === undefined || value === from[key]
      ? []
      : [{ container: name, resource, from: from[key], to: value }];
  };
  return [{ container, changes: [...change('requests', 'request'), ...change('limits', 'limit')] }];
}

function recordOf(
  pod: PodFacts,
  boost: ValidBoost,
  boosted: readonly BoostedContainer[],
  { reason, timestamp }: Pick<BoostRecord, 'timestamp'> & { readonly reason: RaiseCause },
): BoostRecord {
  return {
    state: 'Pending',
    timestamp,
    uid: boost.uid,
    generation: boost.generation,
    reason,
    containers: recordedContainers(pod, { boosted, restored: [], present: undefined }),
  };
}

/** The version is a guard here: what was judged is the whole pod, and there is no record yet to test. */
function markPending(
  pod: PodFacts,
  boost: BoostIdentity,
  record: BoostRecord,
  cause: RaiseCause,
): RaiseDecision {
  const metadata = (key: string) => jsonPointer('metadata', key);
  const patch: JsonPatch = [
    { op: 'test', path: metadata('uid'), value: pod.uid ?? null },
    { op: 'test', path: metadata('resourceVersion'), value: pod.resourceVersion ?? null },
    ...markOperations(pod, boost, formatRecord(record)),
  ];
  return { kind: 'MarkPending', cause, boost, record, patch };
}

function giveUp(pod: PodFacts, recordText: string, code: SkipCode): RaiseDecision {
  const patch = clearPatch(pod, recordText, { kind: 'Skipped', code });
  return { kind: 'GiveUp', code, message: MESSAGES[code], patch };
}

function leave(code: RaiseLeaveCode): RaiseDecision {
  return { kind: 'Leave', code, message: MESSAGES[code] };
}

function wait(what: 'Node' | 'Kubelet', until: number): RaiseDecision {
  return { kind: 'Wait', for: what, ...(until === Infinity ? {} : { until }) };
}
