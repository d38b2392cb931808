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

/** What the container has after admission. */
export function modelBoost(container: ModelContainer, policy: ModelPolicy): Cpu {
  const before: Cpu = { request: container.request, limit: container.limit };
  if (container.restartsOnResize) return before;
  const after: Cpu =
    'percent' in policy
      ? {
          request: increased(container.request, policy.percent),
          limit: increased(container.limit, policy.percent),
        }
      : {
          request: atLeast(container.request, policy.requests),
          limit: atLeast(container.limit, policy.limits),
        };
  const isInvalid =
    after.request !== undefined && after.limit !== undefined && after.request > after.limit;
  const changesClass = isGuaranteed(container, before) !== isGuaranteed(container, after);
  return isInvalid || changesClass ? before : after;
}

function increased(value: number | undefined, percent: number): number | undefined {
  return value === undefined ? undefined : Math.ceil((value * (100 + percent)) / 100);
}

function atLeast(value: number | undefined, wanted: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(value, wanted ?? 0);
}

/** A container with CPU is Burstable if it is not Guaranteed. */
function isGuaranteed({ memoryRequest, memoryLimit }: ModelContainer, cpu: Cpu): boolean {
  return (
    cpu.request !== undefined &&
    cpu.request === cpu.limit &&
    memoryRequest !== undefined &&
    memoryRequest === memoryLimit
  );
}
