/** How much CPU a container policy gives. */
import type { IssueList } from './issue';
import { fieldsOf, integerOf } from './json';
import { formatCpu, increaseByPercent, parseQuantity, roundUpToMilli } from './quantity';
import type { Quantity } from './quantity';

export type ResourcePolicy =
  | { readonly kind: 'PercentageIncrease'; readonly percent: number }
  | { readonly kind: 'FixedResources'; readonly requests: Quantity; readonly limits?: Quantity };

export const CPU_LIMITS = ['Raise', 'Remove', 'Keep'] as const;

/**
 * What a boost does with the CPU limits of its containers:
 * - `Raise`: they are raised as the requests are.
 * - `Remove`: a container has none while it is boosted; where that is not possible they are raised.
 *   Only at creation, since a resize cannot take a limit away ("resource limits cannot be removed").
 * - `Keep`: they stay, and requests are raised below them.
 */
export type CpuLimits = (typeof CPU_LIMITS)[number];

/** CPU of a container as quantities; a key that the container does not have is absent. */
export interface CpuQuantities {
  readonly request?: Quantity;
  readonly limit?: Quantity;
}

/**
 * What the policy makes of a container's CPU.
 *
 * - a key that the container does not have stays absent: the API server lets nobody remove a
 *   request or a limit again ("resource limits cannot be removed");
 * - a value is never lowered, and a limit of zero, which means no limit at all, stays.
 */
function applyPolicy(policy: ResourcePolicy, cpu: CpuQuantities): CpuQuantities {
  const { request, limit } = cpu;
  return cpuQuantities(
    request === undefined ? undefined : raise(policy, 'requests', request),
    limit === undefined || limit === 0n ? limit : raise(policy, 'limits', limit),
  );
}

function raise(policy: ResourcePolicy, key: 'requests' | 'limits', present: Quantity): Quantity {
  switch (policy.kind) {
    case 'PercentageIncrease':
      return increaseByPercent(present, BigInt(policy.percent));
    case 'FixedResources': {
      const wanted = policy[key];
      return wanted === undefined || wanted <= present ? present : wanted;
    }
  }
}

/**
 * The container's CPU with its boost.
 *
 * A limit is taken away only beside a request, since one alone would come back with a request of the
 * same size; and one of zero is none.
 */
export function boostedCpu(
  policy: ResourcePolicy,
  cpu: CpuQuantities,
  cpuLimits: CpuLimits,
): CpuQuantities {
  const { request, limit } = applyPolicy(policy, cpu);
  switch (cpuLimits) {
    case 'Raise':
      return cpuQuantities(request, limit);
    case 'Keep':
      return cpuQuantities(request, cpu.limit);
    case 'Remove': {
      const isRemovable = request !== undefined && limit !== 0n;
      return cpuQuantities(request, isRemovable ? undefined : limit);
    }
  }
}

export function cpuQuantities(
  request: Quantity | undefined,
  limit: Quantity | undefined,
): CpuQuantities {
  return {
    ...(request === undefined ? {} : { request }),
    ...(limit === undefined ? {} : { limit }),
  };
}

/** The policy in a few characters for a table: `+100%`, or `2/3` for request and limit. */
export function describePolicy(policy: ResourcePolicy): string {
  switch (policy.kind) {
    case 'PercentageIncrease':
      return `+${policy.percent}%`;
    case 'FixedResources':
      return policy.limits === undefined
        ? formatCpu(policy.requests)
        : `${formatCpu(policy.requests)}/${formatCpu(policy.limits)}`;
  }
}

/** Compiles the one resource policy of a container policy. */
export function compileResourcePolicy(
  policy: unknown,
  path: string,
  issues: IssueList,
): ResourcePolicy | undefined {
  const fields = fieldsOf(policy);
  const percentage = fields.get('percentageIncrease') ?? undefined;
  const fixed = fields.get('fixedResources') ?? undefined;
  if ((percentage === undefined) === (fixed === undefined)) {
    issues.add(path, 'needs exactly one of percentageIncrease and fixedResources');
    return undefined;
  }
  return percentage === undefined
    ? compileFixed(fixed, `${path}.fixedResources`, issues)
    : compilePercentage(percentage, `${path}.percentageIncrease.value`, issues);
}

function compilePercentage(
  value: unknown,
  path: string,
  issues: IssueList,
): ResourcePolicy | undefined {
  const percent = integerOf(fieldsOf(value).get('value'));
  if (percent === undefined || percent < 1) {
    issues.add(path, 'must be a whole number of at least 1');
    return undefined;
  }
  return { kind: 'PercentageIncrease', percent };
}

function compileFixed(value: unknown, path: string, issues: IssueList): ResourcePolicy | undefined {
  const fields = fieldsOf(value);
  const requests = positiveCpu(fields.get('requests'));
  const hasLimits = isSet(fields.get('limits'));
  const limits = hasLimits ? positiveCpu(fields.get('limits')) : undefined;
  if (requests === undefined) issues.add(`${path}.requests`, 'must be a CPU quantity above 0');
  if (hasLimits && limits === undefined) {
    issues.add(`${path}.limits`, 'must be a CPU quantity above 0');
  }
  if (requests === undefined || (hasLimits && limits === undefined)) return undefined;
  if (limits !== undefined && limits < requests) {
    issues.add(`${path}.limits`, 'must be at least fixedResources.requests');
    return undefined;
  }
  return { kind: 'FixedResources', requests, ...(limits === undefined ? {} : { limits }) };
}

/** Zero is how a Go client writes absent limits. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && parseQuantity(value) !== 0n;
}

function positiveCpu(value: unknown): Quantity | undefined {
  const quantity = parseQuantity(value);
  return quantity !== undefined && quantity > 0n ? roundUpToMilli(quantity) : undefined;
}
