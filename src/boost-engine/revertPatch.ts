/** The two patches of a revert, each guarded so that it changes only what was judged. */
import { jsonPointer } from './jsonPatch';
import type { JsonPatch, JsonPatchOperation } from './jsonPatch';
import { BOOST_KEY, SKIPPED_KEY } from './keys';
import type { PodShape } from './limitRange';
import type { ContainerFacts, PodFacts } from './pod';
import { parseQuantity, sameQuantity } from './quantity';
import { formatRecord } from './record';
import type { BoostRecord, ContainerRecord } from './record';

/** One CPU value that goes back. */
export interface CpuChange {
  readonly container: string;
  readonly resource: 'requests' | 'limits';
  /** Absent where the limit was removed for the boost. */
  readonly from: string | undefined;
  readonly to: string;
}

interface ContainerChanges {
  readonly container: ContainerFacts;
  readonly changes: readonly CpuChange[];
}

export interface RevertPlan {
  readonly changes: readonly CpuChange[];
  /** Patch for `pods/resize`; empty where nothing has to change. */
  readonly patch: JsonPatch;
  /** Containers of the record that are still in the pod. */
  readonly containers: readonly ContainerFacts[];
  /** Values that somebody else has set since, and that therefore stay. */
  readonly changedByOther: readonly string[];
}

/** What gives the recorded containers their CPU back: never more than they have, by key. */
export function planRevert(pod: PodFacts, recordText: string, record: BoostRecord): RevertPlan {
  const plans = pod.containers.flatMap((container) => {
    const recorded = record.containers.get(container.name);
    return recorded === undefined ? [] : [planContainer(container, recorded)];
  });
  const changed = plans.filter(({ changes }) => changes.length > 0);
  return {
    changes: changed.flatMap(({ changes }) => changes),
    patch: changed.length === 0 ? [] : [...guards(pod, recordText), ...changed.flatMap(operations)],
    containers: plans.map(({ container }) => container),
    changedByOther: plans.flatMap(({ changedByOther }) => changedByOther),
  };
}

/** The pod's containers as they are once the plan is carried out. */
export function afterRevert(pod: PodFacts, plan: RevertPlan): PodShape {
  const addedLimits = new Set(
    plan.changes.filter(({ from }) => from === undefined).map(({ container }) => container),
  );
  const containers = pod.containers.map(({ name, requests, limits }) => ({
    requests,
    limits: addedLimits.has(name) ? new Map([...(limits ?? []), ['cpu', '']]) : limits,
  }));
  return { containers, initContainers: pod.initContainers };
}

/** Takes the marker off the pod: the record, the label, and a reason for skipping if there is one. */
export function clearPatch(pod: PodFacts, recordText: string): JsonPatch {
  const remove = (map: 'labels' | 'annotations', key: string): JsonPatchOperation[] =>
    pod[map]?.has(key) === true ? [{ op: 'remove', path: jsonPointer('metadata', map, key) }] : [];
  return [
    ...guards(pod, recordText),
    ...remove('annotations', BOOST_KEY),
    ...remove('annotations', SKIPPED_KEY),
    ...remove('labels', BOOST_KEY),
  ];
}

/** Writes that the boost was taken back before the pod had a node. */
export function pendingPatch(pod: PodFacts, recordText: string, record: BoostRecord): JsonPatch {
  const path = jsonPointer('metadata', 'annotations', BOOST_KEY);
  const value = formatRecord({ ...record, state: 'Pending' });
  return [...guards(pod, recordText), { op: 'replace', path, value }];
}

/** Same pod, same boost: a pod recreated under the name, or boosted again since, is left alone. */
function guards(pod: PodFacts, recordText: string): JsonPatchOperation[] {
  return [
    { op: 'test', path: jsonPointer('metadata', 'uid'), value: pod.uid ?? null },
    { op: 'test', path: jsonPointer('metadata', 'annotations', BOOST_KEY), value: recordText },
  ];
}

type Judgement = 'Revert' | 'Keep' | 'ChangedByOther';

function planContainer(container: ContainerFacts, recorded: ContainerRecord) {
  const changes: CpuChange[] = [];
  const changedByOther: string[] = [];
  for (const [key, resource] of [
    ['request', 'requests'],
    ['limit', 'limits'],
  ] as const) {
    const present = container.cpu[key];
    const original = recorded.original[key];
    switch (judge(present, original, recorded.boosted[key], tellsBoosted(recorded))) {
      case 'Revert':
        if (original === undefined) break;
        changes.push({ container: container.name, resource, from: present, to: original });
        break;
      case 'ChangedByOther':
        changedByOther.push(`${container.name} ${resource}`);
        break;
      case 'Keep':
        break;
    }
  }
  return { container, changes, changedByOther };
}

function tellsBoosted({ boosted }: ContainerRecord): boolean {
  return boosted.request !== undefined || boosted.limit !== undefined;
}

/**
 * Whether one value goes back to its original.
 *
 * - nothing was recorded for it, or it is back already: keep;
 * - it is absent: only a limit that a boost removed can be, and it comes back;
 * - the record tells what the boost set: it goes back if it is still just that;
 * - the record tells the originals only: it goes back if it is higher.
 *
 * A value below its original is never raised: whoever lowered it meant it.
 */
function judge(
  present: string | undefined,
  original: string | undefined,
  boosted: string | undefined,
  knowsBoosted: boolean,
): Judgement {
  if (original === undefined || sameQuantity(present, original)) return 'Keep';
  if (present === undefined) return 'Revert';
  if (!isAbove(present, original)) return 'ChangedByOther';
  if (!knowsBoosted) return 'Revert';
  return sameQuantity(present, boosted) ? 'Revert' : 'ChangedByOther';
}

function isAbove(present: string, original: string): boolean {
  const [a, b] = [parseQuantity(present), parseQuantity(original)];
  return a !== undefined && b !== undefined && a > b;
}

/** `test` compares text, so it carries the value just as the API server delivered it. */
function operations({ container, changes }: ContainerChanges): JsonPatchOperation[] {
  const base = ['spec', 'containers', container.index] as const;
  return [
    { op: 'test', path: jsonPointer(...base, 'name'), value: container.name },
    ...changes.flatMap(({ resource, from, to }): JsonPatchOperation[] => {
      const list = jsonPointer(...base, 'resources', resource);
      const path = `${list}/cpu`;
      if (from !== undefined) {
        return [
          { op: 'test', path, value: from },
          { op: 'replace', path, value: to },
        ];
      }
      return container[resource] === undefined
        ? [
            { op: 'test', path: list, value: null },
            { op: 'add', path: list, value: { cpu: to } },
          ]
        : [
            { op: 'test', path, value: null },
            { op: 'add', path, value: to },
          ];
    }),
  ];
}
