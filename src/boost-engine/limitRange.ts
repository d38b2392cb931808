/** What the LimitRanges of a namespace allow, and what they would add: plugin/pkg/admission/limitranger. */
import { fieldsOf, itemsOf, textsOf } from './json';
import type { ContainerResources } from './qosClass';
import { parseQuantity } from './quantity';
import type { Quantity } from './quantity';

/** One item of a LimitRange that is about CPU or adds defaults. */
export interface LimitRangeItem {
  readonly type: 'Container' | 'Pod';
  readonly maxCpu?: Quantity;
  /** Largest quotient of limit and request, in billionths. */
  readonly maxCpuRatio?: Quantity;
  /** What a container without the key is given, on every change of the pod. */
  readonly defaultLimits: ReadonlyMap<string, string>;
  readonly defaultRequests: ReadonlyMap<string, string>;
}

export interface PodShape {
  readonly containers: readonly ContainerResources[];
  readonly initContainers: readonly ContainerResources[];
}

/** A quotient of 1, in billionths. */
const ONE = 1_000_000_000n;

/** Only CPU and memory can be changed by a resize, so only these are added there. */
const RESIZABLE = ['cpu', 'memory'] as const;

/** Reads a LimitRange; never throws, and an item that cannot be read is as good as absent. */
export function readLimitRange(limitRange: unknown): readonly LimitRangeItem[] {
  const spec = fieldsOf(fieldsOf(limitRange).get('spec'));
  return itemsOf(spec.get('limits')).flatMap((value) => {
    const item = fieldsOf(value);
    const type = item.get('type');
    if (type !== 'Container' && type !== 'Pod') return [];
    const maxCpu = parseQuantity(fieldsOf(item.get('max')).get('cpu'));
    const maxCpuRatio = parseQuantity(fieldsOf(item.get('maxLimitRequestRatio')).get('cpu'));
    return [
      {
        type,
        ...(maxCpu === undefined ? {} : { maxCpu }),
        ...(maxCpuRatio === undefined ? {} : { maxCpuRatio }),
        defaultLimits: textsOf(item.get('default')) ?? new Map<string, string>(),
        defaultRequests: textsOf(item.get('defaultRequest')) ?? new Map<string, string>(),
      },
    ];
  });
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

/** maxConstraint and limitRequestRatioConstraint: a maximum needs a limit, a quotient needs both. */
function exceeds(
  item: LimitRangeItem,
  request: Quantity | undefined,
  limit: Quantity | undefined,
): boolean {
  const { maxCpu, maxCpuRatio } = item;
  if (maxCpu !== undefined && (limit === undefined || limit > maxCpu || (request ?? 0n) > maxCpu)) {
    return true;
  }
  if (maxCpuRatio === undefined) return false;
  return !request || !limit || limit * ONE > maxCpuRatio * request;
}

/** The larger of the sum over the containers and the largest init container. */
function podCpu(pod: PodShape, key: 'requests' | 'limits'): Quantity | undefined {
  const sum = pod.containers.map((container) => cpuOf(container[key])).reduce(add, undefined);
  return pod.initContainers
    .map((container) => cpuOf(container[key]))
    .reduce((a, b) => (b !== undefined && (a === undefined || b > a) ? b : a), sum);
}

function add(a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined {
  return a === undefined || b === undefined ? (a ?? b) : a + b;
}

function cpuOf(list: ReadonlyMap<string, string> | undefined): Quantity | undefined {
  return parseQuantity(list?.get('cpu'));
}

/**
 * Whether a resize of such a pod would be given more than was asked for: LimitRanger adds its
 * defaults on every change, to every container without the key, and nobody can take them off again.
 */
export function addsDefaults(items: readonly LimitRangeItem[], pod: PodShape): boolean {
  return [...pod.containers, ...pod.initContainers].some((container) =>
    items.some(({ defaultLimits, defaultRequests }) =>
      RESIZABLE.some(
        (resource) =>
          isMissing(resource, defaultLimits, container.limits) ||
          isMissing(resource, defaultRequests, container.requests),
      ),
    ),
  );
}

function isMissing(
  resource: string,
  defaults: ReadonlyMap<string, string>,
  present: ReadonlyMap<string, string> | undefined,
): boolean {
  return defaults.has(resource) && present?.has(resource) !== true;
}
