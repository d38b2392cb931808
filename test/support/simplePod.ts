/** The CPU rules of the API server in plain numbers, written a second time and for the tests only. */
import type { JsonObject } from '../../src/kube';
import { listAt, objectAt, textsAt } from './objectAt';

/** Milli-cores, or mebibytes for memory; a key that is absent is undefined. */
export interface SimpleContainer {
  readonly name: string;
  readonly request: number | undefined;
  readonly limit: number | undefined;
  readonly memoryRequest: number | undefined;
  readonly memoryLimit: number | undefined;
  readonly isSidecar: boolean;
  readonly restartsOnResize: boolean;
}

function milliOf(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined;
  const number = Number(value.replace(/[mu]$/, ''));
  const scale = value.endsWith('m') ? 1 : value.endsWith('u') ? 0.001 : 1_000;
  return Math.ceil(Math.round(number * scale * 1e6) / 1e6);
}

function mebiOf(value: unknown): number | undefined {
  return typeof value === 'string' ? Number(value.replace('Mi', '')) : undefined;
}

export function containersOf(pod: JsonObject, key = 'containers'): SimpleContainer[] {
  return listAt(objectAt(pod, 'spec'), key).map((container) => {
    const resources = objectAt(container, 'resources');
    const [requests, limits] = [objectAt(resources, 'requests'), objectAt(resources, 'limits')];
    return {
      name: String(container.name),
      request: milliOf(requests.cpu),
      limit: milliOf(limits.cpu),
      memoryRequest: mebiOf(requests.memory),
      memoryLimit: mebiOf(limits.memory),
      isSidecar: container.restartPolicy === 'Always',
      restartsOnResize: listAt(container, 'resizePolicy').some(
        (entry) => entry.resourceName === 'cpu' && entry.restartPolicy === 'RestartContainer',
      ),
    };
  });
}

/** ComputePodQOS for pods whose containers are valid (request <= limit). */
export function simpleQos(containers: readonly SimpleContainer[]): string {
  const values = containers.flatMap((c) => [c.request, c.limit, c.memoryRequest, c.memoryLimit]);
  if (!values.some((value) => value !== undefined && value > 0)) return 'BestEffort';
  const isGuaranteed = containers.every(
    (c) =>
      (c.limit ?? 0) > 0 &&
      (c.memoryLimit ?? 0) > 0 &&
      c.request === c.limit &&
      c.memoryRequest === c.memoryLimit,
  );
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function totalOf(
  containers: readonly SimpleContainer[],
  initContainers: readonly SimpleContainer[],
  key: 'request' | 'limit',
): number | undefined {
  const sum = (list: readonly SimpleContainer[]) => {
    const present = list.map((c) => c[key]).filter((value) => value !== undefined);
    return present.length === 0 ? undefined : present.reduce((a, b) => a + b, 0);
  };
  const moments = [
    [...containers, ...initContainers.filter((c) => c.isSidecar)],
    ...initContainers.map((c, i) => [...initContainers.slice(0, i).filter((s) => s.isSidecar), c]),
  ].map(sum);
  const present = moments.filter((value) => value !== undefined);
  return present.length === 0 ? undefined : Math.max(...present);
}

/** Whether LimitRanger lets a pod with these containers be created, as far as CPU goes. */
export function simpleLimitRangeAllows(
  limitRanges: readonly JsonObject[],
  containers: readonly SimpleContainer[],
  initContainers: readonly SimpleContainer[],
): boolean {
  const items = limitRanges.flatMap((range) => listAt(objectAt(range, 'spec'), 'limits'));
  return items.every((item) => {
    const min = milliOf(objectAt(item, 'min').cpu);
    const max = milliOf(objectAt(item, 'max').cpu);
    const ratio = milliOf(objectAt(item, 'maxLimitRequestRatio').cpu);
    const whole = {
      request: totalOf(containers, initContainers, 'request'),
      limit: totalOf(containers, initContainers, 'limit'),
    };
    const judged = { Container: [...containers, ...initContainers], Pod: [whole] }[
      String(item.type)
    ];
    return (judged ?? []).every(
      (cpu) => isOverMin(cpu, min) && isUnderMax(cpu, max) && isUnderRatio(cpu, ratio),
    );
  });
}

type SimpleCpu = Pick<SimpleContainer, 'request' | 'limit'>;

function isOverMin({ request, limit }: SimpleCpu, min: number | undefined): boolean {
  return !min || (request !== undefined && request >= min && (limit ?? min) >= min);
}

function isUnderMax({ request, limit }: SimpleCpu, max: number | undefined): boolean {
  return max === undefined || (limit !== undefined && limit <= max && (request ?? 0) <= max);
}

function isUnderRatio({ request, limit }: SimpleCpu, ratio: number | undefined): boolean {
  if (ratio === undefined) return true;
  return Boolean(request) && Boolean(limit) && ((limit ?? 0) / (request ?? 1)) * 1_000 <= ratio;
}

/** Which CPU values of the pod the quotas count. */
export function simpleTracked(
  quotas: readonly JsonObject[],
  pod: JsonObject,
): { readonly requests: boolean; readonly limits: boolean } {
  const spec = objectAt(pod, 'spec');
  const qos = simpleQos([...containersOf(pod), ...containersOf(pod, 'initContainers')]);
  const priority = typeof spec.priorityClassName === 'string' ? spec.priorityClassName : '';
  const keys = quotas.flatMap((quota) => {
    const quotaSpec = objectAt(quota, 'spec');
    const applies =
      textsAt(quotaSpec, 'scopes').every((scope) => {
        if (scope === 'Terminating') return spec.activeDeadlineSeconds !== undefined;
        if (scope === 'NotTerminating') return spec.activeDeadlineSeconds === undefined;
        return (qos === 'BestEffort') === (scope === 'BestEffort');
      }) &&
      listAt(objectAt(quotaSpec, 'scopeSelector'), 'matchExpressions').every((expression) => {
        const isListed = textsAt(expression, 'values').includes(priority);
        if (expression.operator === 'In') return isListed;
        if (expression.operator === 'NotIn') return !isListed;
        return (priority !== '') === (expression.operator === 'Exists');
      });
    return applies ? Object.keys(objectAt(quotaSpec, 'hard')) : [];
  });
  return {
    requests: keys.includes('cpu') || keys.includes('requests.cpu'),
    limits: keys.includes('limits.cpu'),
  };
}
