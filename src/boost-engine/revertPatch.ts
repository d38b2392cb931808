/** The patches of a stored pod, each guarded so that it changes only what was judged. */
import { jsonPointer } from './jsonPatch';
import type { JsonPatch, JsonPatchOperation } from './jsonPatch';
import { BOOST_KEY, ENDED_KEY, SKIPPED_KEY } from './keys';
import type { PodShape } from './limitRange';
import type { ContainerFacts, PodFacts } from './pod';
import { qosClassOf } from './qosClass';
import { parseQuantity, sameQuantity } from './quantity';
import { formatRecord, lacksLimit, tellsBoosted } from './record';
import type { EndReason, RaiseCause } from './reasons';
import type { BoostRecord, ContainerRecord, RecordState } from './record';

/** One CPU value that is raised, or goes back. */
export interface CpuChange {
  readonly container: string;
  readonly resource: 'requests' | 'limits';
  /** Absent where the limit was removed for the boost. */
  readonly from: string | undefined;
  readonly to: string;
}

export interface ContainerChanges {
  readonly container: ContainerFacts;
  readonly changes: readonly CpuChange[];
}

interface ContainerPlan extends ContainerChanges {
  /** Lists whose value somebody else has set. */
  readonly changedByOther: readonly CpuChange['resource'][];
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
  const wanted = pod.containers.flatMap((container) => {
    const recorded = record.containers.get(container.name);
    return recorded === undefined ? [] : [planContainer(container, recorded)];
  });
  const plans = waysBack(wanted).find((way) => keepsQosClass(pod, way)) ?? wanted;
  const changed = plans.filter(({ changes }) => changes.length > 0);
  return {
    changes: changed.flatMap(({ changes }) => changes),
    patch: changed.length === 0 ? [] : resizePatch(pod, recordText, changed),
    containers: plans.map(({ container }) => container),
    changedByOther: plans.flatMap(({ container, changedByOther }) =>
      changedByOther.map((resource) => `${container.name} ${resource}`),
    ),
  };
}

/** Sets the CPU of the containers, where the pod, its record and each value are as they were judged. */
export function resizePatch(
  pod: PodFacts,
  recordText: string,
  plans: readonly ContainerChanges[],
): JsonPatch {
  return [...guards(pod, recordText), ...plans.flatMap(operations)];
}

/**
 * What is tried in turn. Together with a value of somebody else, be it the CPU of this container, its
 * memory or another container's, an original limit could make the pod Guaranteed, which the API server
 * refuses. A request below its limit, or without one, never does.
 */
function waysBack(wanted: readonly ContainerPlan[]): readonly (readonly ContainerPlan[])[] {
  const withoutContested = wanted.map((plan) =>
    plan.changedByOther.includes('requests') ? withoutLimit(plan) : plan,
  );
  return [wanted, withoutContested, wanted.map(withoutLimit)];
}

function keepsQosClass(pod: PodFacts, plans: readonly ContainerPlan[]): boolean {
  const after = shapeAfter(
    pod,
    plans.flatMap(({ changes }) => changes),
  );
  const classOf = ({ containers, initContainers }: PodShape) =>
    qosClassOf([...containers, ...initContainers]);
  return classOf(after) === classOf(pod);
}

/** The pod's containers as they are once the changes are made. */
export function shapeAfter(pod: PodFacts, changes: readonly CpuChange[]): PodShape {
  const wanted = { requests: new Map<string, string>(), limits: new Map<string, string>() };
  for (const { container, resource, to } of changes) wanted[resource].set(container, to);
  const containers = pod.containers.map((container) => {
    const list = (resource: CpuChange['resource']) => {
      const [present, to] = [container[resource], wanted[resource].get(container.name)];
      return to === undefined ? present : new Map([...(present ?? []), ['cpu', to]]);
    };
    return { requests: list('requests'), limits: list('limits') };
  });
  return { containers, initContainers: pod.initContainers };
}

/** Why a pod carries no marker any more: its boost has ended, or it is left as it is after all. */
export type Farewell =
  | { readonly kind: 'Ended'; readonly reason: EndReason }
  | { readonly kind: 'Skipped'; readonly code: string };

/**
 * Takes the marker off the pod, the record and the label, and leaves the reason on it. Only while the
 * CPU is as it was judged: a raise leaves the record as it is, and a pod that has been raised since
 * must not lose what tells of it.
 */
export function clearPatch(pod: PodFacts, recordText: string, farewell: Farewell): JsonPatch {
  const [key, value] =
    farewell.kind === 'Ended' ? [ENDED_KEY, farewell.reason] : [SKIPPED_KEY, farewell.code];
  const remove = (map: 'labels' | 'annotations', key: string): JsonPatchOperation[] =>
    pod[map]?.has(key) === true ? [{ op: 'remove', path: jsonPointer('metadata', map, key) }] : [];
  return [
    ...guards(pod, recordText),
    ...pod.containers.filter(hasCpu).flatMap(cpuGuards),
    ...remove('annotations', BOOST_KEY),
    ...remove('annotations', SKIPPED_KEY),
    ...remove('labels', BOOST_KEY),
    { op: 'add', path: jsonPointer('metadata', 'annotations', key), value },
  ];
}

/** Writes how far the boost has got; a record that tells no reason gets this one. */
export function statePatch(
  pod: PodFacts,
  recordText: string,
  record: BoostRecord,
  { state, reason }: { readonly state: RecordState; readonly reason: RaiseCause },
): JsonPatch {
  const path = jsonPointer('metadata', 'annotations', BOOST_KEY);
  const value = formatRecord({ ...record, state, reason: record.reason ?? reason });
  return [...guards(pod, recordText), { op: 'replace', path, value }];
}

/** Same pod, same boost: a pod recreated under the name, or boosted again since, is left alone. */
function guards(pod: PodFacts, recordText: string): JsonPatchOperation[] {
  return [
    { op: 'test', path: jsonPointer('metadata', 'uid'), value: pod.uid ?? null },
    { op: 'test', path: jsonPointer('metadata', 'annotations', BOOST_KEY), value: recordText },
  ];
}

const KEYS = { requests: 'request', limits: 'limit' } as const;

type Judgement = 'Revert' | 'Keep' | 'ChangedByOther';

function planContainer(container: ContainerFacts, recorded: ContainerRecord): ContainerPlan {
  const changes: CpuChange[] = [];
  const changedByOther: CpuChange['resource'][] = [];
  for (const resource of ['requests', 'limits'] as const) {
    const key = KEYS[resource];
    const [present, original] = [container.cpu[key], recorded.original[key]];
    switch (judge(resource, container, recorded)) {
      case 'Revert':
        if (original === undefined) break;
        changes.push({ container: container.name, resource, from: present, to: original });
        break;
      case 'ChangedByOther':
        changedByOther.push(resource);
        break;
      case 'Keep':
        break;
    }
  }
  const plan = { container, changes, changedByOther };
  return isRequestAboveLimit(plan) ? withoutLimit(plan) : plan;
}

/** A limit cannot go back under a request that somebody else has set. */
function isRequestAboveLimit({ container, changes }: ContainerPlan): boolean {
  const after = (resource: CpuChange['resource']) =>
    changes.find((change) => change.resource === resource)?.to ?? container[resource]?.get('cpu');
  const [request, limit] = [after('requests'), after('limits')];
  return request !== undefined && limit !== undefined && isAbove(request, limit);
}

function withoutLimit(plan: ContainerPlan): ContainerPlan {
  const { container, changes, changedByOther } = plan;
  if (!changes.some(({ resource }) => resource === 'limits')) return plan;
  return {
    container,
    changes: changes.filter(({ resource }) => resource !== 'limits'),
    changedByOther: [...changedByOther, 'limits'],
  };
}

/**
 * Whether one value goes back to its original.
 *
 * - nothing was recorded for it, or it is back already: keep;
 * - it is absent: a limit that the boost removed comes back, and a request is never given;
 * - it is a limit whose original is zero, which means no limit at all: no boost has raised that;
 * - the record tells what the boost set: it goes back if it is still just that;
 * - the record tells the originals only: it goes back if it is higher.
 *
 * A value below its original is never raised: whoever lowered it meant it.
 */
function judge(
  resource: CpuChange['resource'],
  { cpu }: ContainerFacts,
  recorded: ContainerRecord,
): Judgement {
  const { original, boosted } = recorded;
  const key = KEYS[resource];
  const [present, target] = [cpu[key], original[key]];
  if (target === undefined || sameQuantity(present, target)) return 'Keep';
  if (present === undefined) {
    return resource === 'limits' && lacksLimit(cpu, recorded) ? 'Revert' : 'Keep';
  }
  const isUnlimited = resource === 'limits' && isZero(target);
  if (!isAbove(present, target) || isUnlimited) return 'ChangedByOther';
  const isBoosted = sameQuantity(present, boosted[key] ?? undefined);
  return isBoosted || !tellsBoosted(boosted) ? 'Revert' : 'ChangedByOther';
}

function isZero(text: string): boolean {
  return parseQuantity(text) === 0n;
}

function isAbove(present: string, original: string): boolean {
  const [a, b] = [parseQuantity(present), parseQuantity(original)];
  return a !== undefined && b !== undefined && a > b;
}

function operations({ container, changes }: ContainerChanges): JsonPatchOperation[] {
  return [
    ...nameGuard(container),
    ...changes.flatMap(({ resource, to }) => [
      cpuGuard(container, resource),
      setCpu(container, resource, to),
    ]),
  ];
}

/** One without is never raised. */
function hasCpu({ cpu }: ContainerFacts): boolean {
  return cpu.request !== undefined || cpu.limit !== undefined;
}

/** The container has the CPU that it was judged by. */
function cpuGuards(container: ContainerFacts): JsonPatchOperation[] {
  return [...nameGuard(container), cpuGuard(container, 'requests'), cpuGuard(container, 'limits')];
}

/** An empty name may as well be an absent one, of which no text could be tested. */
function nameGuard({ index, name }: ContainerFacts): JsonPatchOperation[] {
  if (name === '') return [];
  return [{ op: 'test', path: jsonPointer('spec', 'containers', index, 'name'), value: name }];
}

/** `test` compares text, so it carries the value just as the API server delivered it. */
function cpuGuard(container: ContainerFacts, resource: CpuChange['resource']): JsonPatchOperation {
  const list = listPath(container, resource);
  return container[resource] === undefined
    ? { op: 'test', path: list, value: null }
    : { op: 'test', path: `${list}/cpu`, value: container.cpu[KEYS[resource]] ?? null };
}

function setCpu(
  container: ContainerFacts,
  resource: CpuChange['resource'],
  value: string,
): JsonPatchOperation {
  const list = listPath(container, resource);
  if (container[resource] === undefined) return { op: 'add', path: list, value: { cpu: value } };
  const op = container.cpu[KEYS[resource]] === undefined ? 'add' : 'replace';
  return { op, path: `${list}/cpu`, value };
}

function listPath({ index }: ContainerFacts, resource: CpuChange['resource']): string {
  return jsonPointer('spec', 'containers', index, 'resources', resource);
}
