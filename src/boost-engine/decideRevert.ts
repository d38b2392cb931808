/** Decides, from a pod that carries the marker of a boost, whether its CPU goes back now. */
import type { CompiledBoost, ValidBoost } from './boost';
import { boostEnd } from './durationPolicy';
import type { BoostEnd } from './durationPolicy';
import type { JsonPatch } from './jsonPatch';
import { BOOST_KEY } from './keys';
import { readPod } from './pod';
import type { PodFacts } from './pod';
import { STUCK_REASONS } from './reasons';
import type { EndReason, StuckReason } from './reasons';
import { parseRecord } from './record';
import { isFinished, resizeProgress } from './resizeProgress';
import { clearPatch, planRevert } from './revertPatch';
import type { CpuChange } from './revertPatch';

/** What the caller knows about the boost that the pod's label names. */
export type BoostKnowledge =
  | { readonly kind: 'Present'; readonly boost: CompiledBoost }
  /** Missing from a complete list; `since` is the epoch millisecond at which the caller saw that. */
  | { readonly kind: 'Absent'; readonly since: number }
  /** The list is not complete yet, or could not be read: nothing is reverted for absence. */
  | { readonly kind: 'Unknown' };

export interface RevertSettings {
  /** Longest time from PodScheduled that any boost may last, in milliseconds. */
  readonly maximumBoostMs: number;
  /** How long a boost must be missing before its pods revert, in milliseconds. */
  readonly boostDeletedGraceMs: number;
}

export interface RevertInput {
  /** The pod as the API server delivered it: plain JSON. */
  readonly pod: unknown;
  readonly boost: BoostKnowledge;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly settings: RevertSettings;
}

export type RevertDecision =
  /** The pod carries no boost, or is about to go. */
  | { readonly kind: 'Nothing' }
  /** The boost goes on, or the kubelet is at work; judge again on an event, or at `until`. */
  | { readonly kind: 'Wait'; readonly for: 'End' | 'Kubelet'; readonly until?: number }
  /** Send the patch to `pods/resize`. */
  | {
      readonly kind: 'Resize';
      readonly reason: EndReason;
      /** Epoch milliseconds at which the boost ended, where that was a matter of time. */
      readonly endedAt?: number;
      readonly changes: readonly CpuChange[];
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
 *    └─ Wait until                     └─ Wait for the kubelet
 * ```
 *
 * Guarantees: a value is lowered to its recorded original or a recorded limit is added back, never
 * anything else; both patches fail if the pod or its record has changed since.
 */
export function decideRevert({ pod, boost, now, settings }: RevertInput): RevertDecision {
  const facts = readPod(pod);
  const recordText = facts.annotations?.get(BOOST_KEY);
  if (recordText === undefined || facts.isTerminating) return { kind: 'Nothing' };
  const parsed = parseRecord(recordText);
  if (parsed.kind === 'Unreadable') return stuck('RecordUnreadable', parsed.why);
  const plan = planRevert(facts, recordText, parsed.record);
  const end = endOfBoost(facts, boost, now, settings);
  if (plan.changes.length > 0) {
    if (end.kind === 'NotYet') return { kind: 'Wait', for: 'End', ...untilOf(end) };
    const { reason, at } = end;
    const { changes, patch } = plan;
    return { kind: 'Resize', reason, ...(at === undefined ? {} : { endedAt: at }), changes, patch };
  }
  const progress = resizeProgress(facts, plan.containers);
  switch (progress.kind) {
    case 'Waiting':
      return { kind: 'Wait', for: 'Kubelet' };
    case 'Infeasible':
      return stuck('Infeasible', progress.message);
    case 'Done':
      return {
        kind: 'Clear',
        reason: end.kind === 'Ended' ? end.reason : 'AlreadyOriginal',
        changedByOther: plan.changedByOther,
        patch: clearPatch(facts, recordText),
      };
  }
}

function endOfBoost(
  pod: PodFacts,
  knowledge: BoostKnowledge,
  now: number,
  settings: RevertSettings,
): BoostEnd {
  if (pod.labels?.has(BOOST_KEY) !== true) return { kind: 'Ended', reason: 'LabelRemoved' };
  if (isFinished(pod)) return { kind: 'Ended', reason: 'PodFinished' };
  switch (knowledge.kind) {
    case 'Present':
      return boostEnd(pod, durationOf(knowledge.boost), settings.maximumBoostMs, now);
    case 'Unknown':
      return boostEnd(pod, undefined, settings.maximumBoostMs, now);
    case 'Absent': {
      const until = knowledge.since + settings.boostDeletedGraceMs;
      if (now >= until) return { kind: 'Ended', reason: 'BoostDeleted', at: until };
      const end = boostEnd(pod, undefined, settings.maximumBoostMs, now);
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

function untilOf(end: { readonly until?: number }): { readonly until?: number } {
  return end.until === undefined ? {} : { until: end.until };
}

function stuck(why: StuckReason, detail: string): RevertDecision {
  return {
    kind: 'Stuck',
    why,
    message: detail === '' ? STUCK_REASONS[why] : `${STUCK_REASONS[why]}: ${detail}`,
  };
}
