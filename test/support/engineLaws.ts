/** What a decision of the engine makes of a pod, read without the engine's own plans. */
import fastJsonPatch from 'fast-json-patch';
import {
  BOOST_KEY,
  ENDED_KEY,
  fieldsOf,
  isObject,
  itemsOf,
  parseQuantity,
  readPod,
  SKIPPED_KEY,
} from '../../src/boost-engine';
import type { JsonPatch, JsonPatchOperation } from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { patched } from './patched';

/**
 * The object after the patch, as the API server applies it; throws where it would refuse the patch.
 *
 * One rule differs: in evanphx/json-patch, which the API server uses, a `test` with the value null
 * passes where nothing stands at the path, as long as its parent is there. fast-json-patch, like the
 * RFC, lets it fail. Such tests are therefore judged here.
 */
export function applied(object: unknown, patch: JsonPatch): JsonObject {
  const original = copyOf(object);
  const isNullTest = (operation: JsonPatchOperation) =>
    operation.op === 'test' && operation.value === null;
  const result = patched(
    original,
    patch.filter((operation) => !isNullTest(operation)),
  );
  // All tests of a path come before it is changed, so the original may be looked at for them.
  for (const { path } of patch.filter(isNullTest)) expectAbsent(original, path);
  return result;
}

/**
 * The object after the patch; undefined where the API server would refuse it, as it may for an object
 * that it could not have delivered: then the patch does nothing.
 */
export function appliedOrRefused(object: unknown, patch: JsonPatch): JsonObject | undefined {
  try {
    return applied(object, patch);
  } catch {
    return undefined;
  }
}

/** A copy in which no two places share one object, as in anything that came over the wire. */
function copyOf(object: unknown): JsonObject {
  return isObject(object) ? Object.fromEntries(fieldsOf(JSON.parse(JSON.stringify(object)))) : {};
}

function expectAbsent(object: object, path: string): void {
  const parentPath = path.slice(0, path.lastIndexOf('/'));
  const parent: unknown = fastJsonPatch.getValueByPointer(object, parentPath);
  if (!isObject(parent) && !Array.isArray(parent)) throw new Error(`${parentPath} is not there`);
  const value: unknown = fastJsonPatch.getValueByPointer(object, path);
  if (value !== undefined && value !== null) throw new Error(`${path} is there`);
}

/** The resources of each container, key by key, as they stand in the pod. */
export function resourcesOf(pod: unknown): readonly unknown[] {
  return itemsOf(fieldsOf(fieldsOf(pod).get('spec')).get('containers')).map((container) =>
    fieldsOf(container).get('resources'),
  );
}

export interface CpuValues {
  readonly name: string;
  /** Billionths of a core; undefined where there is no such key, or no quantity. */
  readonly request: bigint | undefined;
  readonly limit: bigint | undefined;
}

export function cpuOf(pod: unknown): readonly CpuValues[] {
  return readPod(pod).containers.map(({ name, cpu }) => ({
    name,
    request: parseQuantity(cpu.request),
    limit: parseQuantity(cpu.limit),
  }));
}

/**
 * Containers with more CPU afterwards than before. A request that was absent counts as lower than
 * any, a limit that was absent as higher than any.
 */
export function raisedContainers(before: unknown, after: unknown): readonly string[] {
  const present = cpuOf(before);
  return cpuOf(after)
    .filter(({ request, limit }, index) => {
      const old = present[index];
      const asksForMore =
        request !== undefined && (old?.request === undefined || old.request < request);
      const mayUseMore = old?.limit !== undefined && (limit === undefined || old.limit < limit);
      return asksForMore || mayUseMore;
    })
    .map(({ name }) => name);
}

/** Containers with less CPU afterwards than before. */
export function loweredContainers(before: unknown, after: unknown): readonly string[] {
  return raisedContainers(after, before);
}

/** Containers that the API server refuses, since they request more than their limit. */
export function containersAboveLimit(pod: unknown): readonly string[] {
  return cpuOf(pod)
    .filter(({ request, limit }) => request !== undefined && limit !== undefined && request > limit)
    .map(({ name }) => name);
}

const OWN_KEYS = [BOOST_KEY, SKIPPED_KEY, ENDED_KEY];

/** What stands in labels and annotations beside the boost's own keys; empty and absent are one. */
export function foreignMetadata(pod: unknown): readonly ReadonlyMap<string, string>[] {
  const { labels, annotations } = readPod(pod);
  return [labels, annotations].map(
    (map) => new Map([...(map ?? [])].filter(([key]) => !OWN_KEYS.includes(key))),
  );
}

/** Whether the pod carries the label or the record of a boost. */
export function hasMarker(pod: unknown): boolean {
  const { labels, annotations } = readPod(pod);
  return labels?.has(BOOST_KEY) === true || annotations?.has(BOOST_KEY) === true;
}

/** The pod once the API server has counted the change and the kubelet has carried it out. */
export function confirmed(pod: JsonObject): JsonObject {
  const facts = readPod(pod);
  const generation = (facts.generation ?? 0) + 1;
  return {
    ...pod,
    metadata: { ...Object.fromEntries(fieldsOf(pod.metadata)), generation },
    status: {
      ...Object.fromEntries(fieldsOf(pod.status)),
      observedGeneration: generation,
      containerStatuses: facts.containers.map(({ name, cpu }) => ({
        name,
        allocatedResources: cpu.request === undefined ? {} : { cpu: cpu.request },
      })),
    },
  };
}
