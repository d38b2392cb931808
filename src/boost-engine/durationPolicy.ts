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

/**
 * Whether a pod's boost has ended at `now` (epoch milliseconds).
 *
 * Time counts from `PodScheduled=True`, as in google/kube-startup-cpu-boost: a pod that waits for a
 * node or has not been seen by the scheduler yet uses none of it up.
 *
 * @param duration the policy of the pod's boost; undefined where it is not known at the moment
 * @param maximumMs hard end that holds for every pod
 */
export function boostEnd(
  pod: PodFacts,
  duration: DurationPolicy | undefined,
  maximumMs: number,
  now: number,
): BoostEnd {
  if (duration?.podCondition !== undefined && conditionHolds(pod, duration.podCondition)) {
    return { kind: 'Ended', reason: 'ConditionMet' };
  }
  const scheduledAt = scheduledTime(pod);
  if (scheduledAt === undefined) return { kind: 'NotYet' };
  const fixedEnd = duration?.fixed === undefined ? Infinity : scheduledAt + fixedMs(duration.fixed);
  const maximumEnd = scheduledAt + maximumMs;
  if (now >= fixedEnd) return { kind: 'Ended', reason: 'DurationElapsed', at: fixedEnd };
  if (now >= maximumEnd) return { kind: 'Ended', reason: 'MaximumElapsed', at: maximumEnd };
  return { kind: 'NotYet', until: Math.min(fixedEnd, maximumEnd) };
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
