/** Decides, from a pod that carries the marker of a boost, whether its CPU goes back now. */
import type { CompiledBoost, ValidBoost } from './boost';
import { boostEnd } from './durationPolicy';
import type { BoostEnd, EndSettings } from './durationPolicy';
import type { JsonPatch } from './jsonPatch';
import { BOOST_KEY } from './keys';
import { addsDefaults, readLimitRange } from './limitRange';
import { readPod } from './pod';
import type { PodFacts } from './pod';
import { STUCK_REASONS } from './reasons';
import type { EndReason, StuckReason } from './reasons';
import { parseRecord, tellsBoostedValues } from './record';
import type { BoostRecord } from './record';
import { isFinished, isHeldBack, resizeProgress } from './resizeProgress';
import type { ConfirmSettings } from './resizeProgress';
import { clearPatch, planRevert, shapeAfter, statePatch } from './revertPatch';
import type { CpuChange, RevertPlan } from './revertPatch';

/** What the caller knows about the boost that the pod's label names. */
export type BoostKnowledge =
  | { readonly kind: 'Present'; readonly boost: CompiledBoost }
  /** Missing from a complete list; `since` is the epoch millisecond at which the caller saw that. */
  | { readonly kind: 'Absent'; readonly since: number }
  /** A person wants every boost to end, whatever it says. */
  | { readonly kind: 'Unwanted' }
  /** The list is not complete yet, or could not be read: nothing is reverted for absence. */
  | { readonly kind: 'Unknown' };

export interface RevertSettings extends EndSettings, ConfirmSettings {
  /** How long a boost must be missing before its pods revert, in milliseconds. */
  readonly boostDeletedGraceMs: number;
  /** Reverts even where a LimitRange would then add its defaults to the pod. */
  readonly limitRangeDefaults: 'Avoid' | 'Accept';
}

/**
 * Whether pods are raised in place:
 * - `On`: the caller asks decideRaise about a pod whose boost is yet to come;
 * - `Off`: such a boost is over as soon as the pod has a node;
 * - `Unknown`: the caller does not know yet, and the pod waits.
 */
export type Raising = 'On' | 'Off' | 'Unknown';

export interface RevertInput {
  /** The pod as the API server delivered it: plain JSON. */
  readonly pod: unknown;
  readonly boost: BoostKnowledge;
  /** The LimitRanges of the namespace, plain JSON; none where left out. */
  readonly limitRanges?: readonly unknown[];
  /**
   * Epoch milliseconds at which the caller first saw the pod wait for its kubelet; left out where it
   * does so for the first time.
   */
  readonly waitingSince?: number;
  /** `Off` where left out. */
  readonly raising?: Raising;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly settings: RevertSettings;
}

export type RevertDecision =
  /** The pod carries no boost, or is about to go. */
  | { readonly kind: 'Nothing' }
  /**
   * The boost goes on, the kubelet is at work, the pod, whose boost is yet to come, has no node, or it
   * is for decideRaise to go on; judge again on an event, or at `until` (epoch milliseconds).
   */
  | {
      readonly kind: 'Wait';
      readonly for: 'End' | 'Kubelet' | 'Node' | 'Raise';
      readonly until?: number;
    }
  /** Send the patch to `pods/resize`. */
  | {
      readonly kind: 'Resize';
      readonly reason: EndReason;
      /** Epoch milliseconds at which the boost ended, where that was a matter of time. */
      readonly endedAt?: number;
      readonly changes: readonly CpuChange[];
      readonly patch: JsonPatch;
    }
  /**
   * Before the CPU goes back the record has to say what is to follow: a raise on a node, none, or that
   * the node had no room for it. Send the patch to `pods`.
   */
  | {
      readonly kind: 'MarkPending' | 'MarkActive' | 'MarkInfeasible';
      readonly reason: EndReason;
      readonly patch: JsonPatch;
    }
  /** The CPU is back: send the patch to `pods`. */
  | {
      readonly kind: 'Clear';
      readonly reason: EndReason;
      readonly changedByOther: readonly string[];
      readonly patch: JsonPatch;
    }
  /** Nothing more can be done now; a person has to know. */
  | { readonly kind: 'Stuck'; readonly why: StuckReason; readonly message: string };

/**
 * Decides the next step for one pod; never throws, and the same input always gives the same answer,
 * whatever made the caller ask.
 *
 * The life of a boosted pod:
 *
 * ```
 * boosted ──(end)──> Resize ──> at its originals ──(kubelet confirms)──> Clear ──> no marker
 *    │ Wait until                      │ Wait for the kubelet
 *    └─(no node has room)──> MarkPending ──> Resize ──> Wait for a node ──(bound)──> decideRaise
 * ```
 *
 * A record says `Pending` only while the pod may still be raised, so a boost that has ended once is
 * never given again, wherever the caller was killed.
 *
 * Guarantees: a value is lowered to its recorded original or a recorded limit is added back, never
 * anything else; every patch fails if the pod or its record has changed since.
 */
export function decideRevert(input: RevertInput): RevertDecision {
  const facts = readPod(input.pod);
  const recordText = facts.annotations?.get(BOOST_KEY);
  if (recordText === undefined || facts.isTerminating) return { kind: 'Nothing' };
  const parsed = parseRecord(recordText);
  if (parsed.kind === 'Unreadable') return stuck('RecordUnreadable', parsed.why);
  const { record } = parsed;
  const plan = planRevert(facts, recordText, record);
  const isRaised = plan.changes.length > 0;
  const end = isRaised && hasNoRoom(facts, record, plan) ? NO_ROOM : endOfBoost(facts, input);
  const boosted: BoostedPod = { facts, recordText, record, plan, end };
  return isRaised ? resizeStep(boosted, input) : closingStep(boosted, input);
}

interface BoostedPod {
  readonly facts: PodFacts;
  readonly recordText: string;
  readonly record: BoostRecord;
  readonly plan: RevertPlan;
  readonly end: BoostEnd;
}

const NO_ROOM: BoostEnd = { kind: 'Ended', reason: 'NoRoomOnNode' };

/** A raise that its node does not take is given up at once: it would be granted when nobody needs it. */
function hasNoRoom(pod: PodFacts, record: BoostRecord, { containers }: RevertPlan): boolean {
  if (record.reason === undefined) return false;
  return record.state === 'Infeasible' || isHeldBack(pod, containers);
}

/** The pod has more CPU than its own. */
function resizeStep(pod: BoostedPod, input: RevertInput): RevertDecision {
  const { facts, record, plan, end } = pod;
  if (end.kind === 'NotYet') {
    const isMarked = record.state !== 'Pending' || !isForRaise(pod, input);
    return { kind: 'Wait', for: isMarked ? 'End' : 'Raise', ...untilOf(end.until) };
  }
  const { limitRanges = [], settings } = input;
  if (
    settings.limitRangeDefaults === 'Avoid' &&
    addsDefaults(limitRanges.flatMap(readLimitRange), shapeAfter(facts, plan.changes))
  ) {
    return stuck('LimitRangeWouldChangePod', '');
  }
  const { reason, at } = end;
  const mark = markBefore(pod, reason);
  if (mark !== undefined) return mark;
  const { changes, patch } = plan;
  return { kind: 'Resize', reason, ...(at === undefined ? {} : { endedAt: at }), changes, patch };
}

/** The record says what is to follow before the CPU goes back. */
function markBefore(pod: BoostedPod, reason: EndReason): RevertDecision | undefined {
  const { facts, recordText, record } = pod;
  const state = stateBefore(record, reason);
  if (state === undefined || state === record.state) return undefined;
  const patch = statePatch(facts, recordText, record, { state, reason: 'Unschedulable' });
  return { kind: MARKS[state], reason, patch };
}

const MARKS = {
  Pending: 'MarkPending',
  Active: 'MarkActive',
  Infeasible: 'MarkInfeasible',
} as const;

function stateBefore(record: BoostRecord, reason: EndReason): keyof typeof MARKS | undefined {
  if (reason === 'Unschedulable') return 'Pending';
  if (reason === 'NoRoomOnNode') return 'Infeasible';
  return record.state === 'Pending' ? 'Active' : undefined;
}

/** The pod has its own CPU: its boost is yet to come, or the kubelet confirms and the marker goes. */
function closingStep(pod: BoostedPod, input: RevertInput): RevertDecision {
  const waiting = waitForRaise(pod, input);
  if (waiting !== undefined) return waiting;
  const progress = resizeProgress(pod.facts, pod.plan.containers, input);
  switch (progress.kind) {
    case 'Waiting':
      return { kind: 'Wait', for: 'Kubelet', until: progress.until };
    case 'NotConfirmed':
      return stuck('NotConfirmed', '');
    case 'Infeasible':
      return stuck('Infeasible', progress.message);
    case 'Done':
      return clearStep(pod);
  }
}

/** Nothing is left to be done for the CPU. */
function clearStep({ facts, recordText, record, plan, end }: BoostedPod): RevertDecision {
  const reason = reasonOf(record, end);
  const patch = clearPatch(facts, recordText, { kind: 'Ended', reason });
  return { kind: 'Clear', reason, changedByOther: plan.changedByOther, patch };
}

/** A boost that is yet to come waits for a node, for its own return, or for decideRaise. */
function waitForRaise(pod: BoostedPod, input: RevertInput): RevertDecision | undefined {
  const { facts, record, end } = pod;
  if (facts.nodeName === undefined) return waitForNode(pod, input);
  const isToCome = record.state === 'Pending' && tellsBoostedValues(record);
  if (!isToCome || end.kind === 'Ended' || (input.raising ?? 'Off') === 'Off') return undefined;
  return { kind: 'Wait', for: isForRaise(pod, input) ? 'Raise' : 'End', ...untilOf(end.until) };
}

function waitForNode(pod: BoostedPod, input: RevertInput): RevertDecision | undefined {
  const { record, end } = pod;
  const isUnschedulable = end.kind === 'Ended' && end.reason === 'Unschedulable';
  if (!isUnschedulable && (end.kind === 'Ended' || record.state !== 'Pending')) return undefined;
  const mark = isUnschedulable ? markBefore(pod, end.reason) : undefined;
  return mark ?? { kind: 'Wait', for: 'Node', ...untilOf(deletionTime(input)) };
}

/** Whether decideRaise can go on with the pod: it needs the boost itself. */
function isForRaise({ facts }: BoostedPod, { raising, boost }: RevertInput): boolean {
  return (
    raising === 'On' &&
    facts.nodeName !== undefined &&
    boost.kind === 'Present' &&
    boost.boost.kind === 'Valid'
  );
}

/** Without an end of its own, the record says what became of the boost. */
function reasonOf({ state, reason }: BoostRecord, end: BoostEnd): EndReason {
  if (state === 'Infeasible' && reason !== undefined) return 'NoRoomOnNode';
  if (end.kind === 'Ended') return end.reason;
  if (state !== 'Pending') return 'AlreadyOriginal';
  return (reason ?? 'Unschedulable') === 'Unschedulable' ? 'Unschedulable' : 'NotRaised';
}

function endOfBoost(pod: PodFacts, { boost, now, settings }: RevertInput): BoostEnd {
  if (pod.labels?.has(BOOST_KEY) !== true) return { kind: 'Ended', reason: 'LabelRemoved' };
  if (isFinished(pod)) return { kind: 'Ended', reason: 'PodFinished' };
  switch (boost.kind) {
    case 'Present':
      return boostEnd(pod, durationOf(boost.boost), settings, now);
    case 'Unwanted':
      return { kind: 'Ended', reason: 'RevertAll' };
    case 'Unknown':
      return boostEnd(pod, undefined, settings, now);
    case 'Absent': {
      const until = boost.since + settings.boostDeletedGraceMs;
      if (now >= until) return { kind: 'Ended', reason: 'BoostDeleted', at: until };
      const end = boostEnd(pod, undefined, settings, now);
      return end.kind === 'Ended'
        ? end
        : { kind: 'NotYet', until: Math.min(until, end.until ?? until) };
    }
  }
}

/** An invalid boost tells no duration that could be trusted: the maximum alone holds. */
function durationOf(boost: CompiledBoost): ValidBoost['duration'] | undefined {
  return boost.kind === 'Valid' ? boost.duration : undefined;
}

/** Epoch milliseconds at which a boost that is missing counts as deleted. */
function deletionTime({ boost, settings }: RevertInput): number | undefined {
  return boost.kind === 'Absent' ? boost.since + settings.boostDeletedGraceMs : undefined;
}

function untilOf(until: number | undefined): { readonly until?: number } {
  return until === undefined ? {} : { until };
}

function stuck(why: StuckReason, detail: string): RevertDecision {
  return {
    kind: 'Stuck',
    why,
    message: detail === '' ? STUCK_REASONS[why] : `${STUCK_REASONS[why]}: ${detail}`,
  };
}
