/** The facts about a pod that decisions rest on, read once from JSON that nobody has checked. */
import { fieldsOf, integerOf, isObject, itemsOf, textOf, textsOf, timeOf } from './json';
import type { JsonFields } from './json';

/** CPU request and limit as texts, just as the API server delivered them. */
export interface CpuResources {
  readonly request?: string;
  readonly limit?: string;
}

export interface ContainerFacts {
  /** Position in `spec.containers`. */
  readonly index: number;
  readonly name: string;
  readonly cpu: CpuResources;
  readonly requests: ReadonlyMap<string, string> | undefined;
  readonly limits: ReadonlyMap<string, string> | undefined;
  readonly hasClaims: boolean;
  /** `restartPolicy: Always`: among the init containers, a sidecar. */
  readonly restartsAlways: boolean;
  /** A change of CPU would restart the container (`resizePolicy`). */
  readonly restartsOnCpuResize: boolean;
}

export interface PodCondition {
  readonly status: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** Epoch milliseconds. */
  readonly lastTransitionTime: number | undefined;
}

export interface MetadataFacts {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly generation: number | undefined;
  /** Epoch milliseconds. */
  readonly createdAt: number | undefined;
  readonly labels: ReadonlyMap<string, string> | undefined;
  readonly annotations: ReadonlyMap<string, string> | undefined;
  readonly isTerminating: boolean;
}

export interface PodFacts extends MetadataFacts {
  readonly nodeName: string | undefined;
  readonly isWindows: boolean;
  readonly priorityClassName: string | undefined;
  /** Filled in from the class by the API server. */
  readonly priority: number | undefined;
  readonly preemptionPolicy: string | undefined;
  /** `activeDeadlineSeconds` is set. */
  readonly hasDeadline: boolean;
  readonly hasPodLevelResources: boolean;
  readonly hasResourceClaims: boolean;
  readonly containers: readonly ContainerFacts[];
  readonly initContainers: readonly ContainerFacts[];
  readonly phase: string | undefined;
  readonly conditions: ReadonlyMap<string, PodCondition>;
  readonly observedGeneration: number | undefined;
  /** CPU request that the kubelet has allocated, by container; a container without status is absent. */
  readonly allocatedCpu: ReadonlyMap<string, string | undefined>;
}

/** Reads a pod; never throws, and a field of the wrong kind reads as absent. */
export function readPod(pod: unknown): PodFacts {
  const root = fieldsOf(pod);
  const status = fieldsOf(root.get('status'));
  return {
    ...readMetadata(pod),
    ...readSpec(fieldsOf(root.get('spec'))),
    phase: textOf(status.get('phase')),
    conditions: readConditions(status.get('conditions')),
    observedGeneration: integerOf(status.get('observedGeneration')),
    allocatedCpu: readAllocatedCpu(status.get('containerStatuses')),
  };
}

/** Reads the metadata of any object; never throws. */
export function readMetadata(object: unknown): MetadataFacts {
  const metadata = fieldsOf(fieldsOf(object).get('metadata'));
  return {
    namespace: textOf(metadata.get('namespace')),
    name: textOf(metadata.get('name')),
    uid: textOf(metadata.get('uid')),
    resourceVersion: textOf(metadata.get('resourceVersion')),
    generation: integerOf(metadata.get('generation')),
    createdAt: timeOf(metadata.get('creationTimestamp')),
    labels: textsOf(metadata.get('labels')),
    annotations: textsOf(metadata.get('annotations')),
    isTerminating: textOf(metadata.get('deletionTimestamp')) !== undefined,
  };
}

function readSpec(spec: JsonFields) {
  const containers = readContainers(spec.get('containers'));
  const initContainers = readContainers(spec.get('initContainers'));
  return {
    nodeName: filledTextOf(spec.get('nodeName')),
    isWindows: isWindows(spec),
    priorityClassName: textOf(spec.get('priorityClassName')),
    priority: integerOf(spec.get('priority')),
    preemptionPolicy: textOf(spec.get('preemptionPolicy')),
    hasDeadline: integerOf(spec.get('activeDeadlineSeconds')) !== undefined,
    hasPodLevelResources: fieldsOf(spec.get('resources')).size > 0,
    hasResourceClaims:
      itemsOf(spec.get('resourceClaims')).length > 0 ||
      [...containers, ...initContainers].some((container) => container.hasClaims),
    containers,
    initContainers,
  };
}

/** Most Windows pods say so by the nodes that they select, a RuntimeClass's included, and not by `os`. */
function isWindows(spec: JsonFields): boolean {
  const nodeSelector = fieldsOf(spec.get('nodeSelector'));
  const names = [
    fieldsOf(spec.get('os')).get('name'),
    nodeSelector.get('kubernetes.io/os'),
    nodeSelector.get('beta.kubernetes.io/os'),
  ];
  return names.includes('windows');
}

function readContainers(value: unknown): ContainerFacts[] {
  return itemsOf(value).map((item, index) => {
    const container = fieldsOf(item);
    const resources = fieldsOf(container.get('resources'));
    const requests = quantityTextsOf(resources.get('requests'));
    const limits = quantityTextsOf(resources.get('limits'));
    return {
      index,
      name: textOf(container.get('name')) ?? '',
      cpu: cpuResources(requests?.get('cpu'), limits?.get('cpu')),
      requests,
      limits,
      hasClaims: itemsOf(resources.get('claims')).length > 0,
      restartsAlways: container.get('restartPolicy') === 'Always',
      restartsOnCpuResize: itemsOf(container.get('resizePolicy')).some(restartsOnCpu),
    };
  });
}

/** A manifest may write `cpu: 2` as a number; the API server delivers texts only. */
function quantityTextsOf(value: unknown): ReadonlyMap<string, string> | undefined {
  if (!isObject(value)) return undefined;
  const texts = new Map<string, string>();
  for (const [key, quantity] of fieldsOf(value)) {
    if (typeof quantity === 'string') texts.set(key, quantity);
    if (typeof quantity === 'number') texts.set(key, String(quantity));
  }
  return texts;
}

/** Go clients write an absent text as an empty one. */
function filledTextOf(value: unknown): string | undefined {
  return value === '' ? undefined : textOf(value);
}

function restartsOnCpu(policy: unknown): boolean {
  const fields = fieldsOf(policy);
  return fields.get('resourceName') === 'cpu' && fields.get('restartPolicy') === 'RestartContainer';
}

export function cpuResources(request: string | undefined, limit: string | undefined): CpuResources {
  return {
    ...(request === undefined ? {} : { request }),
    ...(limit === undefined ? {} : { limit }),
  };
}

function readConditions(value: unknown): ReadonlyMap<string, PodCondition> {
  const conditions = new Map<string, PodCondition>();
  for (const item of itemsOf(value)) {
    const fields = fieldsOf(item);
    const type = textOf(fields.get('type'));
    const status = textOf(fields.get('status'));
    if (type === undefined || status === undefined) continue;
    conditions.set(type, {
      status,
      reason: textOf(fields.get('reason')),
      message: textOf(fields.get('message')),
      lastTransitionTime: timeOf(fields.get('lastTransitionTime')),
    });
  }
  return conditions;
}

function readAllocatedCpu(value: unknown): ReadonlyMap<string, string | undefined> {
  const allocated = new Map<string, string | undefined>();
  for (const item of itemsOf(value)) {
    const fields = fieldsOf(item);
    const name = textOf(fields.get('name'));
    if (name === undefined) continue;
    allocated.set(name, textsOf(fields.get('allocatedResources'))?.get('cpu'));
  }
  return allocated;
}
