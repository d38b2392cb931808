/** The part of a pod that decisions look at, so that a cache of many pods stays small. */
import { itemsOf } from '../boost-engine';
import { isJsonObject } from '../kube';
import type { JsonObject } from '../kube';

const METADATA = [
  'namespace',
  'name',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'labels',
  'annotations',
];
const SPEC = [
  'nodeName',
  'nodeSelector',
  'os',
  'priority',
  'priorityClassName',
  'preemptionPolicy',
  'activeDeadlineSeconds',
  'resources',
  'resourceClaims',
];
const CONTAINER = ['name', 'resources', 'resizePolicy', 'restartPolicy'];
const STATUS = ['phase', 'observedGeneration', 'conditions'];

/** What `readPod` of the engine reads, and no more; a pod of 20 kB keeps about one. */
export function judgedPartOf(pod: JsonObject): JsonObject {
  const { apiVersion, kind, metadata, spec, status } = pod;
  return {
    apiVersion,
    kind,
    metadata: picked(metadata, METADATA),
    spec: {
      ...picked(spec, SPEC),
      containers: pickedEach(field(spec, 'containers'), CONTAINER),
      initContainers: pickedEach(field(spec, 'initContainers'), CONTAINER),
    },
    status: {
      ...picked(status, STATUS),
      containerStatuses: pickedEach(field(status, 'containerStatuses'), [
        'name',
        'allocatedResources',
      ]),
    },
  };
}

function field(value: unknown, key: string): unknown {
  return isJsonObject(value) ? value[key] : undefined;
}

function picked(value: unknown, keys: readonly string[]): JsonObject {
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    keys.flatMap((key) => (value[key] === undefined ? [] : [[key, value[key]]])),
  );
}

function pickedEach(value: unknown, keys: readonly string[]): readonly JsonObject[] {
  return itemsOf(value).map((item) => picked(item, keys));
}
