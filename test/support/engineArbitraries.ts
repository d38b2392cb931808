/** Generators near the truth: legal pods, boosts and records, and legal objects with one thing damaged. */
import fc from 'fast-check';
import {
  BOOST_KEY,
  compileBoost,
  fieldsOf,
  isObject,
  readPod,
  SKIPPED_KEY,
} from '../../src/boost-engine';
import type { CpuLimits } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';

/** Every generated time lies within an hour of this moment. */
export const NOON = Date.parse('2026-06-01T12:00:00Z');

const MINUTE = 60_000;
const CONTAINER_NAMES = ['app', 'app-2', 'web', 'istio-proxy', 'constructor'];
const LABELS = { app: ['web', 'api'], tier: ['front', 'back'], toString: ['x'] };

/** CPU as the API server writes it: whole cores where it is whole, else milli-cores. */
export function canonicalCpu(milli: number): string {
  return milli % 1_000 === 0 ? String(milli / 1_000) : `${milli}m`;
}

/** Milli-cores, with the small and the round ones often. */
export const milli = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 4_000 }),
  fc.constantFrom(100, 250, 500, 1_000, 2_000, 4_000),
);

export interface CpuShape {
  readonly request: number | undefined;
  readonly limit: number | undefined;
}

/** The CPU that containers have: none, one value, both, or both the same, in milli-cores. */
export const cpuShape: fc.Arbitrary<CpuShape> = fc.oneof(
  fc.record({ request: milli, limit: fc.constant(undefined) }),
  { weight: 3, arbitrary: fc.tuple(milli, milli).map(ordered) },
  { weight: 2, arbitrary: milli.map((both) => ({ request: both, limit: both })) },
  fc.constant({ request: undefined, limit: undefined }),
);

function ordered([a, b]: [number, number]): CpuShape {
  return { request: Math.min(a, b), limit: Math.max(a, b) };
}

/** Memory request and limit: absent, or, as in many manifests, the same. */
export const memoryShape = fc.constantFrom<readonly [string?, string?]>(
  [],
  ['64Mi'],
  ['64Mi', '128Mi'],
  ['128Mi', '128Mi'],
  ['128Mi', '128Mi'],
);

export function resourcesFrom(cpu: CpuShape, memory: readonly [string?, string?]): JsonObject {
  const list = (cpuMilli: number | undefined, memoryText: string | undefined) => ({
    ...(cpuMilli === undefined ? {} : { cpu: canonicalCpu(cpuMilli) }),
    ...(memoryText === undefined ? {} : { memory: memoryText }),
  });
  const requests = list(cpu.request, memory[0]);
  const limits = list(cpu.limit, memory[1]);
  return {
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
}

const resizePolicy = fc.constantFrom(
  undefined,
  undefined,
  [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
  [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }],
  [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
);

function container(name: string): fc.Arbitrary<JsonObject> {
  return containerOf(name, cpuShape, memoryShape);
}

/** A container that lets a pod of such containers be Guaranteed. */
function guaranteedContainer(name: string): fc.Arbitrary<JsonObject> {
  const same = milli.map((both) => ({ request: both, limit: both }));
  return containerOf(name, same, fc.constant(['64Mi', '64Mi']));
}

function containerOf(
  name: string,
  cpu: fc.Arbitrary<CpuShape>,
  memory: fc.Arbitrary<readonly [string?, string?]>,
): fc.Arbitrary<JsonObject> {
  return fc.tuple(cpu, memory, resizePolicy).map(([cpuValues, memoryValues, policy]) => ({
    name,
    image: 'example/app:1',
    resources: resourcesFrom(cpuValues, memoryValues),
    ...(policy === undefined ? {} : { resizePolicy: policy }),
  }));
}

const containers = fc
  .shuffledSubarray(CONTAINER_NAMES, { minLength: 1, maxLength: 4 })
  .chain((names) =>
    fc.oneof(
      { weight: 5, arbitrary: fc.tuple(...names.map(container)) },
      { weight: 2, arbitrary: fc.tuple(...names.map(guaranteedContainer)) },
      fc.constant(names.map((name): JsonObject => ({ name, resources: {} }))),
    ),
  );

const initContainers = fc.option(
  container('init').map((init) => [init]),
  { nil: undefined, freq: 4 },
);

const labels: fc.Arbitrary<JsonObject> = fc
  .subarray(Object.entries(LABELS))
  .chain((entries) =>
    fc.tuple(
      ...entries.map(([key, values]) =>
        fc.constantFrom(...values).map((value) => [key, value] as const),
      ),
    ),
  )
  .map((entries) => Object.fromEntries(entries));

const annotations = fc.constantFrom<JsonObject | undefined>(
  undefined,
  {},
  { team: 'a' },
  { 'a/b~c': 'd' },
  { [SKIPPED_KEY]: 'NoCpu' },
);

/** A pod under creation, as the API server shows it to the webhook. */
export const pod: fc.Arbitrary<JsonObject> = fc
  .record({
    containers,
    initContainers,
    labels: fc.option(labels, { nil: undefined, freq: 6 }),
    annotations,
    more: fc.oneof(
      { weight: 12, arbitrary: fc.constant({}) },
      fc.constantFrom<JsonObject>(
        { nodeName: 'node' },
        { nodeName: '' },
        { os: { name: 'windows' } },
        { nodeSelector: { 'kubernetes.io/os': 'windows' } },
        { os: { name: 'linux' } },
        { resources: { requests: { cpu: '8' } } },
        { resourceClaims: [{ name: 'gpu' }] },
      ),
    ),
  })
  .map((parts) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'app',
      namespace: 'default',
      ...(parts.labels === undefined ? {} : { labels: parts.labels }),
      ...(parts.annotations === undefined ? {} : { annotations: parts.annotations }),
    },
    spec: {
      containers: parts.containers,
      ...(parts.initContainers === undefined ? {} : { initContainers: parts.initContainers }),
      ...parts.more,
    },
  }));

export interface PercentPolicy {
  readonly percentageIncrease: { readonly value: number };
}
export interface FixedPolicy {
  readonly fixedResources: { readonly requests: string; readonly limits?: string };
}

export const percentPolicy: fc.Arbitrary<PercentPolicy> = fc
  .oneof(fc.integer({ min: 1, max: 400 }), fc.constantFrom(50, 100, 200))
  .map((value) => ({ percentageIncrease: { value } }));

export const fixedPolicy: fc.Arbitrary<FixedPolicy> = fc
  .tuple(milli, fc.option(milli, { nil: undefined }))
  .map(([a, b]) => ({
    fixedResources:
      b === undefined
        ? { requests: canonicalCpu(a) }
        : { requests: canonicalCpu(Math.min(a, b)), limits: canonicalCpu(Math.max(a, b)) },
  }));

export const resourcePolicy = fc.oneof(percentPolicy, fixedPolicy);

const matcher = fc.oneof(
  fc.constantFrom(...CONTAINER_NAMES).map((value) => ({ type: 'ExactName', value })),
  fc.constantFrom('^app', '.*', 'proxy$', '^(web|constructor)$').map((value) => ({
    type: 'RegexName',
    value,
  })),
);

const containerPolicy = fc
  .tuple(matcher, resourcePolicy)
  .map(([matchContainers, policy]): JsonObject => ({ matchContainers, ...policy }));

const labelKey = fc.constantFrom(...Object.keys(LABELS), 'absent', '__proto__');
const labelValue = fc.constantFrom('web', 'api', 'front', 'back', 'x', '');

/** A metav1.LabelSelector. */
export const selector: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.dictionary(labelKey, labelValue, { maxKeys: 2 }).map((matchLabels) => ({ matchLabels })),
  fc
    .array(
      fc.oneof(
        fc.record({
          key: labelKey,
          operator: fc.constantFrom('In', 'NotIn'),
          values: fc.array(labelValue, { minLength: 1, maxLength: 3 }),
        }),
        fc.record({ key: labelKey, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
      ),
      { maxLength: 3 },
    )
    .map((matchExpressions) => ({ matchExpressions })),
);

const fixedDuration = fc.record({
  unit: fc.constantFrom('Seconds', 'Minutes'),
  value: fc.integer({ min: 1, max: 120 }),
});
const podCondition = fc.record({
  type: fc.constantFrom('Ready', 'ContainersReady', 'example.com/warm'),
  status: fc.constantFrom('True', 'False', 'Unknown'),
});
const durationPolicy = fc.oneof(
  fc.record({ fixedDuration }),
  fc.record({ podCondition }),
  fc.record({ fixedDuration, podCondition }),
);

const time = fc
  .integer({ min: -30 * MINUTE, max: 0 })
  .map((offset) => `${new Date(NOON + offset).toISOString().slice(0, 19)}Z`);

export const cpuLimits = fc.option(
  fc.constantFrom<CpuLimits>('Raise', 'Remove', 'Remove', 'Keep'),
  {
    nil: undefined,
    freq: 2,
  },
);

/** A StartupCPUBoost that selects often. */
export const boost: fc.Arbitrary<JsonObject> = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    creationTimestamp: fc.oneof(time, fc.constantFrom('2026-06-01T11:00:00Z')),
    selector,
    containerPolicies: fc.array(containerPolicy, { minLength: 1, maxLength: 3 }),
    cpuLimits,
    durationPolicy,
  })
  .map((parts) => ({
    apiVersion: 'autoscaling.x-k8s.io/v1alpha1',
    kind: 'StartupCPUBoost',
    metadata: {
      name: parts.name,
      namespace: 'default',
      uid: `uid-${parts.name}`,
      generation: 1,
      creationTimestamp: parts.creationTimestamp,
    },
    selector: parts.selector,
    spec: {
      resourcePolicy: {
        containerPolicies: parts.containerPolicies,
        ...(parts.cpuLimits === undefined ? {} : { cpuLimits: parts.cpuLimits }),
      },
      durationPolicy: parts.durationPolicy,
    },
  }));

/** Boosts of one namespace: no two have the same name. */
export const boosts = boostList(0);
export const someBoosts = boostList(1);

function boostList(minLength: number): fc.Arbitrary<JsonObject[]> {
  return fc.uniqueArray(boost, {
    minLength,
    maxLength: 4,
    selector: (one) => compileBoost(one).name,
  });
}

const recordedCpu = fc.oneof(
  milli.map(canonicalCpu),
  fc.constantFrom('0', '500u', '0.25', '1.5', '1e1', '100', '1k', '9Ei'),
);
const cpuMap = fc.dictionary(fc.constantFrom(...CONTAINER_NAMES), recordedCpu);
/** Null says that the limit was removed. */
const boostedLimits = fc.dictionary(
  fc.constantFrom(...CONTAINER_NAMES),
  fc.option(recordedCpu, { nil: null, freq: 2 }),
);

/** A record as a stranger could write it: it can be read, and says anything. */
export const forgedRecord: fc.Arbitrary<JsonObject> = fc.record(
  {
    state: fc.constantFrom('Active', 'Pending', 'Reverted', 'Infeasible'),
    timestamp: fc.constantFrom('2024-03-01T10:00:00Z', 'never'),
    initCPURequests: cpuMap,
    initCPULimits: cpuMap,
    boostedCPURequests: cpuMap,
    boostedCPULimits: boostedLimits,
  },
  { requiredKeys: [] },
);

/** A record that names as boosted just what the containers of the pod have. */
export function aptFor(pod: JsonObject, record: JsonObject): JsonObject {
  const listed = (key: 'request' | 'limit') =>
    Object.fromEntries(
      readPod(pod).containers.flatMap(({ name, cpu }) => {
        const text = cpu[key];
        return text === undefined ? [] : [[name, text]];
      }),
    );
  return { ...record, boostedCPURequests: listed('request'), boostedCPULimits: listed('limit') };
}

const scheduled = time.map((lastTransitionTime) => ({
  type: 'PodScheduled',
  status: 'True',
  lastTransitionTime,
}));
const unschedulable = time.map((lastTransitionTime) => ({
  type: 'PodScheduled',
  status: 'False',
  reason: 'Unschedulable',
  message: '0/1 nodes are available: 1 Insufficient cpu.',
  lastTransitionTime,
}));
const ownCondition = fc.record({
  type: fc.constantFrom('Ready', 'ContainersReady', 'example.com/warm'),
  status: fc.constantFrom('True', 'False', 'Unknown'),
});
const resizeCondition = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ type: 'Initialized', status: 'True' }) },
  fc.record({
    type: fc.constantFrom('PodResizePending', 'PodResizeInProgress'),
    status: fc.constant('True'),
    reason: fc.constantFrom('Deferred', 'Infeasible', 'Error'),
  }),
);

export interface Progress {
  readonly nodeName: string;
  readonly status: JsonObject;
}

/** What the scheduler and the kubelet may have written by now. */
export const progress: fc.Arbitrary<Progress> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      nodeName: fc.constant('node'),
      status: fc.record({
        phase: fc.constantFrom('Pending', 'Running', 'Running', 'Running', 'Succeeded'),
        observedGeneration: fc.constantFrom(undefined, 1, 2, 3),
        conditions: fc.tuple(scheduled, ownCondition, resizeCondition),
      }),
    }),
  },
  fc.record({
    nodeName: fc.constant(''),
    status: fc.record({
      phase: fc.constant('Pending'),
      conditions: fc.oneof(fc.constant([]), fc.tuple(unschedulable)),
    }),
  }),
);

/** An object with one field removed or replaced by any JSON value. */
export function damaged(objects: fc.Arbitrary<JsonObject>): fc.Arbitrary<unknown> {
  return fc
    .tuple(objects, fc.nat(), fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }))
    .map(([object, position, value]) => {
      const copy: unknown = JSON.parse(JSON.stringify(object));
      const places = placesOf(copy);
      const place = places[position % places.length];
      place?.(value);
      return copy;
    });
}

type Place = (value: unknown) => unknown;

/** For each field and list item below the root, what replaces or removes it. */
function placesOf(value: unknown): readonly Place[] {
  if (Array.isArray(value)) {
    const list: unknown[] = value;
    return list.flatMap((child, index): Place[] => [
      (replacement) => list.splice(index, 1, ...(replacement === undefined ? [] : [replacement])),
      ...placesOf(child),
    ]);
  }
  if (!isObject(value)) return [];
  return [...fieldsOf(value)].flatMap(([key, child]): Place[] => [
    (replacement) =>
      replacement === undefined
        ? Reflect.deleteProperty(value, key)
        : Reflect.set(value, key, replacement),
    ...placesOf(child),
  ]);
}

/** The pod as it stands in the API server. */
export function stored(pod: JsonObject, { nodeName, status }: Progress = ON_A_NODE): JsonObject {
  return withUid({
    ...pod,
    metadata: {
      ...objectOf(pod.metadata),
      generation: 2,
      creationTimestamp: '2026-06-01T11:30:00Z',
    },
    spec: { ...objectOf(pod.spec), nodeName },
    status,
  });
}

const ON_A_NODE: Progress = { nodeName: 'node', status: {} };

/** The API server gives every object a uid, whatever else is wrong with it. */
export function withUid(object: unknown): JsonObject {
  const { metadata, ...rest } = objectOf(object);
  return isObject(metadata)
    ? { metadata: { ...objectOf(metadata), uid: 'pod-uid' }, ...rest }
    : { ...rest };
}

/** The pod with the label of the boost `a` and this record. */
export function marked(pod: JsonObject, record: JsonObject): JsonObject {
  const metadata = objectOf(pod.metadata);
  const labels = { ...objectOf(metadata.labels), [BOOST_KEY]: 'a' };
  const annotations = { ...objectOf(metadata.annotations), [BOOST_KEY]: JSON.stringify(record) };
  return { ...pod, metadata: { ...metadata, labels, annotations } };
}

function objectOf(value: unknown): JsonObject {
  return Object.fromEntries(fieldsOf(value));
}
