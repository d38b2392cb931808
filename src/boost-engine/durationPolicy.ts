/** How long a boost lasts. */
import type { IssueList } from './issue';
import { fieldsOf, integerOf, isObject, textOf } from './json';
import type { PodFacts } from './pod';
import type { EndReason } from './reasons';

export interface PodConditionPolicy {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
}

/** Whichever comes first ends the boost. */
export interface DurationPolicy {
  readonly fixed?: { readonly value: number; readonly unit: 'Seconds' | 'Minutes' };
  readonly podCondition?: PodConditionPolicy;
}

const UNIT_MS = { Seconds: 1_000, Minutes: 60_000 } as const;

export type BoostEnd =
  /** `at`: epoch milliseconds of the end, where it was a matter of time. */
  | { readonly kind: 'Ended'; readonly reason: EndReason; readonly at?: number }
  /** `until`: epoch milliseconds at which the answer may change without an event. */
  | { readonly kind: 'NotYet'; readonly until?: number };

/** Settings that hold for every boost, in milliseconds. */
export interface EndSettings {
  /** Longest time from PodScheduled, and of a pod that is not known to be scheduled from its creation. */
  readonly maximumBoostMs: number;
  /** How long a pod that no node has room for keeps its boost. */
  readonly unschedulableGraceMs: number;
}

/**
 * Whether a pod's boost has ended at `now` (epoch milliseconds).
 *
 * Time counts from `PodScheduled=True`, as in google/kube-startup-cpu-boost: a pod that waits for a
 * node uses none of it up.
 *
 * @param duration the policy of the pod's boost; undefined where it is not known at the moment
 */
export function boostEnd(
  pod: PodFacts,
  duration: DurationPolicy | undefined,
  settings: EndSettings,
  now: number,
): BoostEnd {
  if (duration?.podCondition !== undefined && conditionHolds(pod, duration.podCondition)) {
    return { kind: 'Ended', reason: 'ConditionMet' };
  }
  const scheduledAt = scheduledTime(pod);
  if (scheduledAt === undefined) return unscheduledEnd(pod, settings, now);
  const fixedEnd = duration?.fixed === undefined ? Infinity : scheduledAt + fixedMs(duration.fixed);
  const maximumEnd = scheduledAt + settings.maximumBoostMs;
  if (now >= fixedEnd) return { kind: 'Ended', reason: 'DurationElapsed', at: fixedEnd };
  if (now >= maximumEnd) return { kind: 'Ended', reason: 'MaximumElapsed', at: maximumEnd };
  return { kind: 'NotYet', until: Math.min(fixedEnd, maximumEnd) };
}

/**
 * A boost must not keep a pod from running: without room for it the pod gets its own CPU back, and
 * the scheduler, which sees the change, tries again at once.
 */
function unscheduledEnd(pod: PodFacts, settings: EndSettings, now: number): BoostEnd {
  const hasNode = pod.nodeName !== undefined;
  const lacksCpuSince = hasNode ? undefined : lackOfCpu(pod);
  const graceEnd =
    lacksCpuSince === undefined ? Infinity : lacksCpuSince + settings.unschedulableGraceMs;
  const maximumEnd =
    pod.createdAt === undefined ? Infinity : pod.createdAt + settings.maximumBoostMs;
  const at = Math.min(graceEnd, maximumEnd);
  // A pod with a node and no time of its scheduling must end as well.
  if (now >= at) return { kind: 'Ended', reason: hasNode ? 'MaximumElapsed' : 'Unschedulable', at };
  return at === Infinity ? { kind: 'NotYet' } : { kind: 'NotYet', until: at };
}

/** Since when the scheduler has found no node with enough CPU; the text is the NodeResourcesFit plug-in's. */
function lackOfCpu(pod: PodFacts): number | undefined {
  const condition = pod.conditions.get('PodScheduled');
  const lacksCpu =
    condition?.status === 'False' &&
    condition.reason === 'Unschedulable' &&
    condition.message?.includes('Insufficient cpu') === true;
  return lacksCpu ? condition.lastTransitionTime : undefined;
}

function conditionHolds(pod: PodFacts, policy: PodConditionPolicy): boolean {
  return pod.conditions.get(policy.type)?.status === policy.status;
}

function scheduledTime(pod: PodFacts): number | undefined {
  const condition = pod.conditions.get('PodScheduled');
  return condition?.status === 'True' ? condition.lastTransitionTime : undefined;
}

function fixedMs(fixed: NonNullable<DurationPolicy['fixed']>): number {
  return fixed.value * UNIT_MS[fixed.unit];
}

/** The policy in a few characters for a table: `Ready`, `60s`, `Ready|2m`. */
export function describeDuration(duration: DurationPolicy): string {
  const parts: string[] = [];
  if (duration.podCondition !== undefined) {
    const { type, status } = duration.podCondition;
    parts.push(status === 'True' ? type : `${type}=${status}`);
  }
  if (duration.fixed !== undefined) {
    parts.push(`${duration.fixed.value}${duration.fixed.unit === 'Seconds' ? 's' : 'm'}`);
  }
  return parts.join('|');
}

export function compileDurationPolicy(
  value: unknown,
  path: string,
  issues: IssueList,
): DurationPolicy {
  const fields = fieldsOf(value);
  const fixed = fields.get('fixedDuration') ?? undefined;
  const podCondition = fields.get('podCondition') ?? undefined;
  if (fixed === undefined && podCondition === undefined) {
    issues.add(path, 'needs fixedDuration, podCondition or both');
  }
  const compiledFixed = compileFixedDuration(fixed, `${path}.fixedDuration`, issues);
  const compiledCondition = compilePodCondition(podCondition, `${path}.podCondition`, issues);
  return {
    ...(compiledFixed === undefined ? {} : { fixed: compiledFixed }),
    ...(compiledCondition === undefined ? {} : { podCondition: compiledCondition }),
  };
}

function compileFixedDuration(
  policy: unknown,
  path: string,
  issues: IssueList,
): DurationPolicy['fixed'] {
  if (policy === undefined) return undefined;
  const fields = fieldsOf(policy);
  const value = integerOf(fields.get('value'));
  const unit = fields.get('unit');
  const isValid = value !== undefined && value >= 1;
  if (!isValid) issues.add(`${path}.value`, 'must be a whole number of at least 1');
  if (unit !== 'Seconds' && unit !== 'Minutes') {
    issues.add(`${path}.unit`, 'must be Seconds or Minutes');
    return undefined;
  }
  return isValid ? { value, unit } : undefined;
}

function compilePodCondition(
  policy: unknown,
  path: string,
  issues: IssueList,
): PodConditionPolicy | undefined {
  if (policy === undefined) return undefined;
  if (!isObject(policy)) {
    issues.add(path, 'must be an object with type and status');
    return undefined;
  }
  const fields = fieldsOf(policy);
  const type = textOf(fields.get('type'));
  const status = fields.get('status');
  if (type === undefined || type === '') {
    issues.add(`${path}.type`, 'must be the type of a pod condition, such as Ready');
    return undefined;
  }
  switch (status) {
    case 'True':
    case 'False':
    case 'Unknown':
      return { type, status };
    default:
      issues.add(`${path}.status`, 'must be True, False or Unknown');
      return undefined;
  }
}
