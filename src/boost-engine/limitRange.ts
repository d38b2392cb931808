/** What the LimitRanges of a namespace allow, and what they would add: plugin/pkg/admission/limitranger. */
import { fieldsOf, itemsOf, textsOf } from './json';
import type { ContainerFacts } from './pod';
import type { ContainerResources } from './qosClass';
import { parseQuantity, roundUpToMilli } from './quantity';
import type { Quantity } from './quantity';

/** One item of a LimitRange that is about CPU or adds defaults. */
export interface LimitRangeItem {
  readonly type: 'Container' | 'Pod';
  readonly minCpu?: Quantity;
  readonly maxCpu?: Quantity;
  /** Largest quotient of limit and request, in billionths, whole thousandths as the maximum is. */
  readonly maxCpuRatio?: Quantity;
  /** What a container without the key is given, on every change of the pod. */
  readonly defaultLimits: ReadonlyMap<string, string>;
  readonly defaultRequests: ReadonlyMap<string, string>;
}

export interface PodShape {
  readonly containers: readonly ContainerResources[];
  readonly initContainers: readonly InitContainer[];
}

type InitContainer = ContainerResources & Pick<ContainerFacts, 'restartsAlways'>;

/** Only CPU and memory can be changed by a resize, so only these are added there. */
const RESIZABLE = ['cpu', 'memory'] as const;

/** Reads a LimitRange; never throws, and an item that cannot be read is as good as absent. */
export function readLimitRange(limitRange: unknown): readonly LimitRangeItem[] {
  const spec = fieldsOf(fieldsOf(limitRange).get('spec'));
  return itemsOf(spec.get('limits')).flatMap((value) => {
    const item = fieldsOf(value);
    const type = item.get('type');
    if (type !== 'Container' && type !== 'Pod') return [];
    const minCpu = parseMilli(fieldsOf(item.get('min')).get('cpu'));
    const maxCpu = parseMilli(fieldsOf(item.get('max')).get('cpu'));
    const maxCpuRatio = parseMilli(fieldsOf(item.get('maxLimitRequestRatio')).get('cpu'));
    return [
      {
        type,
        ...(minCpu === undefined ? {} : { minCpu }),
        ...(maxCpu === undefined ? {} : { maxCpu }),
        ...(maxCpuRatio === undefined ? {} : { maxCpuRatio }),
        defaultLimits: textsOf(item.get('default')) ?? new Map<string, string>(),
        defaultRequests: textsOf(item.get('defaultRequest')) ?? new Map<string, string>(),
      },
    ];
  });
}

/** LimitRanger compares whole thousandths, rounded up. */
function parseMilli(value: unknown): Quantity | undefined {
  const quantity = parseQuantity(value);
  return quantity === undefined ? undefined : roundUpToMilli(quantity);
}

/** Whether the API server would refuse a pod of this shape for its CPU. */
export function exceedsLimitRange(items: readonly LimitRangeItem[], pod: PodShape): boolean {
  return items.some((item) => {
    switch (item.type) {
      case 'Container':
        return [...pod.containers, ...pod.initContainers].some((container) =>
          exceeds(item, cpuOf(container.requests), cpuOf(container.limits)),
        );
      case 'Pod':
        return exceeds(item, podCpu(pod, 'requests'), podCpu(pod, 'limits'));
    }
  });
}

/** minConstraint, maxConstraint, limitRequestRatioConstraint: they need a request, a limit, and both. */
function exceeds(
  { minCpu, maxCpu, maxCpuRatio }: LimitRangeItem,
  request: Quantity | undefined,
  limit: Quantity | undefined,
): boolean {
  if (minCpu !== undefined && isBelow(minCpu, request, limit)) return true;
  if (maxCpu !== undefined && (limit === undefined || limit > maxCpu || (request ?? 0n) > maxCpu)) {
    return true;
  }
  if (maxCpuRatio === undefined) return false;
  if (!request || !limit) return true;
  // In floating point as there: 161m over 5m comes out a little above 32.2, and is refused.
  return (milliOf(limit) / milliOf(request)) * 1_000 > milliOf(maxCpuRatio);
}

function isBelow(
  minCpu: Quantity,
  request: Quantity | undefined,
  limit: Quantity | undefined,
): boolean {
  return request === undefined || request < minCpu || (limit !== undefined && limit < minCpu);
}

function milliOf(quantity: Quantity): number {
  return Number(quantity / 1_000_000n);
}

/**
 * What the pod needs at most at a time: the containers with the sidecars, or an init container with
 * the sidecars that were started before it.
 */
function podCpu(pod: PodShape, key: 'requests' | 'limits'): Quantity | undefined {
  let sidecars: Quantity | undefined;
  let starting: Quantity | undefined;
  for (const container of pod.initContainers) {
    const together = add(sidecars, cpuOf(container[key]));
    starting = larger(starting, together);
    if (container.restartsAlways) sidecars = together;
  }
  const running = pod.containers.map((container) => cpuOf(container[key])).reduce(add, sidecars);
  return larger(running, starting);
}

function larger(a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined {
  return b !== undefined && (a === undefined || b > a) ? b : a;
}

function add(a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined {
  return a === undefined || b === undefined ? (a ?? b) : a + b;
}

function cpuOf(list: ReadonlyMap<string, string> | undefined): Quantity | undefined {
  return parseMilli(list?.get('cpu'));
}

/**
 * Whether a resize of such a pod would be given more than was asked for: LimitRanger adds its
 * defaults on every change, to every container without the key, and nobody can take them off again.
 */
export function addsDefaults(items: readonly LimitRangeItem[], pod: PodShape): boolean {
  return [...pod.containers, ...pod.initContainers].some((container) =>
    items.some(
      ({ type, defaultLimits, defaultRequests }) =>
        type === 'Container' &&
        RESIZABLE.some(
          (resource) =>
            isMissing(resource, defaultLimits, container.limits) ||
            isMissing(resource, defaultRequests, container.requests),
        ),
    ),
  );
}

/** Whether LimitRanger would put a CPU limit back that was taken away from a container. */
export function addsCpuLimit(items: readonly LimitRangeItem[]): boolean {
  return items.some(({ type, defaultLimits }) => type === 'Container' && defaultLimits.has('cpu'));
}

function isMissing(
  resource: string,
  defaults: ReadonlyMap<string, string>,
  present: ReadonlyMap<string, string> | undefined,
): boolean {
  return defaults.has(resource) && present?.has(resource) !== true;
}
