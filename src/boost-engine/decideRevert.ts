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
import { parseRecord } from './record';
import type { BoostRecord } from './record';
import { isFinished, resizeProgress } from './resizeProgress';
import type { ConfirmSettings } from './resizeProgress';
import { clearPatch, pendingPatch, planRevert, shapeAfter } from './revertPatch';
import type { CpuChange, RevertPlan } from './revertPatch';

/** What the caller knows about the boost that the pod's label names. */
export type BoostKnowledge =
  | { readonly kind: 'Present'; readonly boost: CompiledBoost }
  /** Missing from a complete list; `since` is the epoch millisecond at which the caller saw that. */
  | { readonly kind: 'Absent'; readonly since: number }
  /** The list is not complete yet, or could not be read: nothing is reverted for absence. */
  | { readonly kind: 'Unknown' };

export interface RevertSettings extends EndSettings, ConfirmSettings {
  /** How long a boost must be missing before its pods revert, in milliseconds. */
  readonly boostDeletedGraceMs: number;
  /** Reverts even where a LimitRange would then add its defaults to the pod. */
  readonly limitRangeDefaults: 'Avoid' | 'Accept';
}

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
  /** Epoch milliseconds. */
  readonly now: number;
  readonly settings: RevertSettings;
}

export type RevertDecision =
  /** The pod carries no boost, or is about to go. */
  | { readonly kind: 'Nothing' }
  /**
   * The boost goes on, the kubelet is at work, or the pod, whose boost was taken back, has no node
   * yet; judge again on an event, or at `until` (epoch milliseconds).
   */
  | { readonly kind: 'Wait'; readonly for: 'End' | 'Kubelet' | 'Node'; readonly until?: number }
  /** Send the patch to `pods/resize`. */
  | {
      readonly kind: 'Resize';
      readonly reason: EndReason;
      /** Epoch milliseconds at which the boost ended, where that was a matter of time. */
      readonly endedAt?: number;
      readonly changes: readonly CpuChange[];
      readonly patch: JsonPatch;
    }
  /** The boost was taken back from a pod without a node: send the patch to `pods`. */
  | { readonly kind: 'MarkPending'; readonly reason: EndReason; readonly patch: JsonPatch }
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
 *    └─(no node has room)──> Resize ──> MarkPending ──> Wait for a node ──(bound)──> Clear
 * ```
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
  const boosted: BoostedPod = {
    facts,
    recordText,
    record: parsed.record,
    plan: planRevert(facts, recordText, parsed.record),
    end: endOfBoost(facts, input),
  };
  return boosted.plan.changes.length > 0 ? resizeStep(boosted, input) : closingStep(boosted, input);
}

interface BoostedPod {
  readonly facts: PodFacts;
  readonly recordText: string;
  readonly record: BoostRecord;
  readonly plan: RevertPlan;
  readonly end: BoostEnd;
}

/** The pod has more CPU than its own. */
function resizeStep({ facts, plan, end }: BoostedPod, input: RevertInput): RevertDecision {
  if (end.kind === 'NotYet') return { kind: 'Wait', for: 'End', ...untilOf(end.until) };
  const { limitRanges = [], settings } = input;
  if (
    settings.limitRangeDefaults === 'Avoid' &&
    addsDefaults(limitRanges.flatMap(readLimitRange), shapeAfter(facts, plan.changes))
  ) {
    return stuck('LimitRangeWouldChangePod', '');
  }
  const { reason, at } = end;
  const { changes, patch } = plan;
  return { kind: 'Resize', reason, ...(at === undefined ? {} : { endedAt: at }), changes, patch };
}

/** The pod has its own CPU again: the kubelet confirms, and the marker goes. */
function closingStep(pod: BoostedPod, input: RevertInput): RevertDecision {
  const progress = resizeProgress(pod.facts, pod.plan.containers, input);
  switch (progress.kind) {
    case 'Waiting':
      return { kind: 'Wait', for: 'Kubelet', until: progress.until };
    case 'NotConfirmed':
      return stuck('NotConfirmed', '');
    case 'Infeasible':
      return stuck('Infeasible', progress.message);
    case 'Done':
      return endStep(pod, input);
  }
}

/** Nothing is left to be done for the CPU: the record stays only where the boost may come back. */
function endStep(pod: BoostedPod, input: RevertInput): RevertDecision {
  const { facts, recordText, record, plan, end } = pod;
  const reason = reasonOf(record, end);
  if (facts.nodeName === undefined && reason === 'Unschedulable') {
    return record.state === 'Pending'
      ? { kind: 'Wait', for: 'Node', ...untilOf(deletionTime(input)) }
      : { kind: 'MarkPending', reason, patch: pendingPatch(facts, recordText, record) };
  }
  const { changedByOther } = plan;
  return { kind: 'Clear', reason, changedByOther, patch: clearPatch(facts, recordText) };
}

/** A pending record says that its boost was taken back, until something else ends it. */
function reasonOf(record: BoostRecord, end: BoostEnd): EndReason {
  if (end.kind === 'Ended') return end.reason;
  return record.state === 'Pending' ? 'Unschedulable' : 'AlreadyOriginal';
}

function endOfBoost(pod: PodFacts, { boost, now, settings }: RevertInput): BoostEnd {
  if (pod.labels?.has(BOOST_KEY) !== true) return { kind: 'Ended', reason: 'LabelRemoved' };
  if (isFinished(pod)) return { kind: 'Ended', reason: 'PodFinished' };
  switch (boost.kind) {
    case 'Present':
      return boostEnd(pod, durationOf(boost.boost), settings, now);
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
