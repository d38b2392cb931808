/**
 * A second, simpler statement of the boost rules: one container, whole milli-cores, no quantities,
 * no records. Written for the tests alone; it shares nothing with the engine.
 */

export interface ModelContainer {
  readonly request: number | undefined;
  readonly limit: number | undefined;
  readonly memoryRequest: number | undefined;
  readonly memoryLimit: number | undefined;
  readonly restartsOnResize: boolean;
}

export type ModelPolicy =
  { readonly percent: number } | { readonly requests: number; readonly limits: number | undefined };

type Cpu = Pick<ModelContainer, 'request' | 'limit'>;

export type ModelLimits = 'Raise' | 'Remove' | 'Keep';

/** What the container has after admission. */
export function modelBoost(
  container: ModelContainer,
  policy: ModelPolicy,
  limits: ModelLimits,
): Cpu {
  const before: Cpu = { request: container.request, limit: container.limit };
  if (container.restartsOnResize) return before;
  const raised: Cpu =
    'percent' in policy
      ? {
          request: increased(container.request, policy.percent),
          limit: increased(container.limit, policy.percent),
        }
      : {
          request: atLeast(container.request, policy.requests),
          limit: atLeast(container.limit, policy.limits),
        };
  const tried = {
    Raise: [raised],
    Keep: [{ ...raised, limit: container.limit }],
    Remove: [...(container.limit === 0 ? [] : [{ ...raised, limit: undefined }]), raised],
  }[limits];
  return tried.find((after) => isPossible(container, after)) ?? before;
}

/** The request is not above the limit, none of both alone went, and the class stays. */
function isPossible(container: ModelContainer, after: Cpu): boolean {
  if (after.request !== undefined && after.limit !== undefined && after.request > after.limit) {
    return false;
  }
  return classOf(container, container) === classOf(container, after);
}

function increased(value: number | undefined, percent: number): number | undefined {
  return value === undefined ? undefined : Math.ceil((value * (100 + percent)) / 100);
}

function atLeast(value: number | undefined, wanted: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(value, wanted ?? 0);
}

function classOf({ memoryRequest, memoryLimit }: ModelContainer, cpu: Cpu): string {
  const values = [cpu.request, cpu.limit, memoryRequest, memoryLimit];
  if (!values.some((value) => value !== undefined && value > 0)) return 'BestEffort';
  const hasBoth = cpu.request === cpu.limit && memoryRequest === memoryLimit;
  return hasBoth && Boolean(cpu.limit) && Boolean(memoryLimit) ? 'Guaranteed' : 'Burstable';
}
