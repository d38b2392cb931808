/** Legal LimitRanges and ResourceQuotas, and pods with what these ask for: sidecars, classes, deadlines. */
import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import type { JsonObject } from '../../src/kube';
import {
  canonicalCpu,
  cpuShape,
  memoryShape,
  milli,
  pod,
  resourcesFrom,
} from './engineArbitraries';
import { objectAt } from './objectAt';

/** Keys whose value is undefined are left out, as in JSON. */
function json(fields: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function sometimes<T>(arbitrary: Arbitrary<T>): Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined, freq: 2 });
}

/** Sidecars and init containers, in any order: what a LimitRange sums up depends on it. */
const initContainers = fc
  .array(fc.record({ cpu: cpuShape, memory: memoryShape, isSidecar: fc.boolean() }), {
    maxLength: 3,
  })
  .map((parts) =>
    parts.map(({ cpu, memory, isSidecar }, index) => ({
      name: `init-${index}`,
      resources: resourcesFrom(cpu, memory),
      ...(isSidecar ? { restartPolicy: 'Always' } : {}),
    })),
  );

/** A pod under creation in a namespace with rules. */
export const ruledPod: Arbitrary<JsonObject> = fc
  .record({
    pod,
    initContainers,
    priorityClassName: sometimes(fc.constantFrom('', 'high', 'low')),
    activeDeadlineSeconds: sometimes(fc.integer({ min: 0, max: 600 })),
  })
  .map(({ pod: plain, ...spec }) => ({
    ...plain,
    spec: { ...objectAt(plain, 'spec'), ...json(spec) },
  }));

const maximum = fc.oneof(fc.constantFrom(1_000, 4_000, 16_000, 64_000), milli).map(canonicalCpu);
const ratio = fc.integer({ min: 1_000, max: 40_000 }).map(canonicalCpu);

const limitRangeItem: Arbitrary<JsonObject> = fc
  .record({
    type: fc.constantFrom('Container', 'Container', 'Pod', 'PersistentVolumeClaim'),
    min: sometimes(fc.constantFrom({ cpu: '1m' }, { cpu: '100m' }, { memory: '1Mi' })),
    max: sometimes(
      fc.oneof(
        maximum.map((cpu) => ({ cpu })),
        fc.constant({ memory: '1Gi' }),
      ),
    ),
    maxLimitRequestRatio: sometimes(ratio.map((cpu) => ({ cpu }))),
  })
  .map(json);

/** A maximum that many pods keep, and many boosts would not. */
const maximumAlone = fc
  .constantFrom('500m', '1', '2', '4', '8')
  .map((cpu) => [{ spec: { limits: [{ type: 'Container', max: { cpu } }] } }]);

/** A limit that LimitRanger puts on every container without one, on every change. */
const defaultAlone = fc
  .constantFrom({ cpu: '64' }, { cpu: '64' }, { memory: '1Gi' })
  .map((list) => [{ spec: { limits: [{ type: 'Container', default: list }] } }]);

export const limitRanges: Arbitrary<JsonObject[]> = fc.oneof(
  fc.constant<JsonObject[]>([]),
  maximumAlone,
  defaultAlone,
  fc.array(
    fc
      .array(limitRangeItem, { minLength: 1, maxLength: 2 })
      .map((limits) => ({ spec: { limits } })),
    { maxLength: 2 },
  ),
);

const scopeExpression: Arbitrary<JsonObject> = fc
  .record({
    operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
    values: fc.subarray(['high', 'low'], { minLength: 1 }),
  })
  .map(({ operator, values }) => ({
    scopeName: 'PriorityClass',
    operator,
    ...(operator.endsWith('In') ? { values } : {}),
  }));

const quota: Arbitrary<JsonObject> = fc
  .record({
    hard: fc.subarray(['cpu', 'requests.cpu', 'limits.cpu', 'pods', 'requests.memory'], {
      minLength: 1,
      maxLength: 2,
    }),
    scopes: sometimes(
      fc
        .constantFrom('Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort')
        .map((scope) => [scope]),
    ),
    scopeSelector: sometimes(
      fc.array(scopeExpression, { maxLength: 2 }).map((matchExpressions) => ({ matchExpressions })),
    ),
  })
  .map(({ hard, ...rest }) => ({
    spec: json({ hard: Object.fromEntries(hard.map((key) => [key, '10'])), ...rest }),
  }));

export const quotas: Arbitrary<JsonObject[]> = fc.oneof(
  fc.constant<JsonObject[]>([]),
  fc.array(quota, { maxLength: 2 }),
);
