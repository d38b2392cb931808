/** Kubernetes objects for tests, as the plain JSON that the API server takes. */
import type { JsonObject } from '../../src/kube';

export interface ResourceLists {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

/** Every combination of CPU request and limit that a container can come with. */
export const RESOURCE_SHAPES = {
  'request and limit': {
    requests: { cpu: '250m', memory: '64Mi' },
    limits: { cpu: '1', memory: '128Mi' },
  },
  'request only': { requests: { cpu: '250m' } },
  // The API server copies the limit into the request.
  'limit only': { limits: { cpu: '500m' } },
  'memory only': { requests: { memory: '64Mi' }, limits: { memory: '128Mi' } },
  Guaranteed: {
    requests: { cpu: '500m', memory: '64Mi' },
    limits: { cpu: '500m', memory: '64Mi' },
  },
  BestEffort: {},
} as const satisfies Readonly<Record<string, ResourceLists>>;

export type ResourceShape = keyof typeof RESOURCE_SHAPES;

/** A container `app` with request and limit; every field can be overridden or added. */
export function aContainer(overrides: JsonObject = {}): JsonObject {
  return {
    name: 'app',
    image: 'example/app:1',
    resources: RESOURCE_SHAPES['request and limit'],
    ...overrides,
  };
}

export interface PodOverrides {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly containers?: readonly JsonObject[];
  /** More fields of metadata, such as uid, and of spec. */
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
}

/** A pod `app` in `default` with the label `app: app` and one container. */
export function aPod(overrides: PodOverrides = {}): JsonObject {
  const { name = 'app', namespace = 'default', annotations, status } = overrides;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: overrides.labels ?? { app: 'app' },
      ...(annotations === undefined ? {} : { annotations }),
      ...overrides.metadata,
    },
    spec: {
      containers: overrides.containers ?? [aContainer()],
      // A pod of the player's node ends at once when it is deleted.
      terminationGracePeriodSeconds: 0,
      ...overrides.spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

export interface BoostOverrides {
  readonly name?: string;
  readonly namespace?: string;
  readonly selector?: JsonObject;
  readonly containerPolicies?: readonly JsonObject[];
  readonly durationPolicy?: JsonObject;
  /** More fields of metadata and of spec. */
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
}

/** A boost that doubles the CPU of container `app` in pods `app: app` until they are Ready. */
export function aBoost(overrides: BoostOverrides = {}): JsonObject {
  const { name = 'boost', namespace = 'default' } = overrides;
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1alpha1',
    kind: 'StartupCPUBoost',
    metadata: { name, namespace, ...overrides.metadata },
    selector: overrides.selector ?? { matchLabels: { app: 'app' } },
    spec: {
      resourcePolicy: {
        containerPolicies: overrides.containerPolicies ?? [percentageIncrease('app', 100)],
      },
      durationPolicy: overrides.durationPolicy ?? UNTIL_READY,
      ...overrides.spec,
    },
  };
}

export const UNTIL_READY: JsonObject = { podCondition: { type: 'Ready', status: 'True' } };

export function untilSeconds(value: number): JsonObject {
  return { fixedDuration: { unit: 'Seconds', value } };
}

/** A container policy for one container by its exact name. */
export function percentageIncrease(containerName: string, value: number): JsonObject {
  return {
    matchContainers: { type: 'ExactName', value: containerName },
    percentageIncrease: { value },
  };
}
