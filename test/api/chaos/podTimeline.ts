/** Every state in which the API server has stored a pod, in order, and who brought it about. */
import {
  BOOST_KEY,
  ENDED_KEY,
  SKIPPED_KEY,
  fieldsOf,
  integerOf,
  itemsOf,
  textOf,
} from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import type { AuditEvent } from '../../support/auditLog';
import { NAMESPACE, cpuOf } from './shapes';
import type { CpuMap } from './shapes';

export type PodAction = 'create' | 'resize' | 'patch' | 'status' | 'bind' | 'delete' | 'list';

export interface PodState {
  /** Of the stored object; grows with every write. */
  readonly version: number;
  readonly generation: number;
  readonly cpu: CpuMap;
  /** Whether it has our label or our record. */
  readonly isMarked: boolean;
  /** Everything that no write of ours may change, as text. */
  readonly rest: string;
}

/** A write that was accepted, with what was stored then. */
export interface PodStep {
  readonly action: PodAction;
  readonly by: string;
  /** Epoch milliseconds: when it was asked for and when it was done. */
  readonly receivedAt: number;
  readonly at: number;
  readonly state: PodState;
}

/** A write that may have happened: nobody got its answer. */
export interface Unanswered {
  readonly action: PodAction;
  readonly by: string;
  readonly receivedAt: number;
}

export interface PodTimeline {
  readonly steps: readonly PodStep[];
  readonly unanswered: readonly Unanswered[];
  /** Whose writes were refused, for a guard that did not hold or any other reason. */
  readonly refused: readonly string[];
  readonly scheduledAt: number | undefined;
  readonly readyAt: number | undefined;
  readonly deletedAt: number | undefined;
  /** Each line of it, for a person. */
  readonly told: readonly string[];
}

/** `final` are the pods as they are listed in the end, at `listedAt`. */
export function podTimelines(
  events: readonly AuditEvent[],
  final: readonly JsonObject[],
  listedAt: number,
): ReadonlyMap<string, PodTimeline> {
  const byPod = new Map<string, AuditEvent[]>();
  const answered = new Set(events.filter(({ stage }) => stage === 'Complete').map(({ id }) => id));
  for (const event of events) {
    const isPods = event.resource === 'pods' || event.resource === 'bindings';
    const isDone = event.stage === 'Complete' || !answered.has(event.id);
    if (!isPods || event.namespace !== NAMESPACE || !isDone) continue;
    const known = byPod.get(event.name);
    if (known === undefined) byPod.set(event.name, [event]);
    else known.push(event);
  }
  const listed = new Map(final.map((pod) => [nameOf(pod), pod]));
  const names = new Set([...byPod.keys(), ...listed.keys()]);
  return new Map(
    [...names].map((name) => {
      const last = listed.get(name);
      return [name, timelineOf(byPod.get(name) ?? [], last, listedAt)] as const;
    }),
  );
}

function timelineOf(
  events: readonly AuditEvent[],
  last: JsonObject | undefined,
  listedAt: number,
): PodTimeline {
  const ordered = [...events].sort((a, b) => a.receivedAt - b.receivedAt);
  const accepted = ordered.filter(({ stage, code }) => stage === 'Complete' && code < 300);
  const steps = accepted.flatMap((event): PodStep[] => {
    const state = stateOf(event.response);
    const { receivedAt, at, user: by } = event;
    return state === undefined ? [] : [{ action: actionOf(event), by, receivedAt, at, state }];
  });
  const finalState = stateOf(last);
  if (finalState !== undefined) {
    const seen = { receivedAt: listedAt, at: listedAt, state: finalState };
    steps.push({ action: 'list', by: '', ...seen });
  }
  const bound = accepted.find((event) => actionOf(event) === 'bind');
  return {
    // By version, which is the order in which they were stored.
    steps: steps.sort((a, b) => a.state.version - b.state.version || a.at - b.at),
    unanswered: ordered
      .filter(({ stage, code }) => stage !== 'Complete' || code >= 500)
      .map((event) => ({ action: actionOf(event), by: event.user, receivedAt: event.receivedAt })),
    refused: ordered.filter(({ code }) => code >= 400 && code < 500).map(({ user }) => user),
    scheduledAt: bound === undefined ? undefined : Math.floor(bound.at / 1_000) * 1_000,
    readyAt: accepted.find((event) => saysReady(event.request))?.at,
    deletedAt: accepted.find((event) => actionOf(event) === 'delete')?.at,
    told: ordered.map(tell),
  };
}

function actionOf({ resource, subresource, verb }: AuditEvent): PodAction {
  if (resource === 'bindings' || subresource === 'binding') return 'bind';
  if (subresource === 'resize' || subresource === 'status') return subresource;
  return verb === 'create' || verb === 'delete' ? verb : 'patch';
}

function saysReady(status: unknown): boolean {
  const conditions = itemsOf(fieldsOf(fieldsOf(status).get('status')).get('conditions'));
  return conditions.map(fieldsOf).some((condition) => {
    return condition.get('type') === 'Ready' && condition.get('status') === 'True';
  });
}

/** Undefined for what is no pod, such as the answer to a binding. */
function stateOf(pod: unknown): PodState | undefined {
  const { metadata, spec } = partsOf(pod);
  const version = Number(textOf(metadata.get('resourceVersion')) ?? Number.NaN);
  if (spec === undefined || !Number.isSafeInteger(version)) return undefined;
  const marks = [...fieldsOf(metadata.get('labels')).keys()].concat([
    ...fieldsOf(metadata.get('annotations')).keys(),
  ]);
  return {
    version,
    generation: integerOf(metadata.get('generation')) ?? 0,
    cpu: cpuOf(pod),
    isMarked: marks.includes(BOOST_KEY),
    rest: restOf(pod),
  };
}

function partsOf(pod: unknown): {
  readonly metadata: ReadonlyMap<string, unknown>;
  readonly spec: unknown;
} {
  const fields = fieldsOf(pod);
  return { metadata: fieldsOf(fields.get('metadata')), spec: fields.get('spec') };
}

const OURS: readonly string[] = [BOOST_KEY, ENDED_KEY, SKIPPED_KEY];

/** Spec and metadata without what we, the scheduler or a deletion may change. */
function restOf(pod: unknown): string {
  const { metadata, spec } = partsOf(pod);
  const withoutOurs = (value: unknown): JsonObject =>
    Object.fromEntries([...fieldsOf(value)].filter(([key]) => !OURS.includes(key)));
  const containers = itemsOf(fieldsOf(spec).get('containers')).map((container) => {
    const resources = fieldsOf(fieldsOf(container).get('resources'));
    const lists = [...resources].map(([name, list]) => [name, without(list, ['cpu'])] as const);
    // A list that had CPU alone is as good as none.
    const left = lists.filter(([, list]) => Object.keys(list).length > 0);
    return { ...without(container, ['resources']), resources: Object.fromEntries(left) };
  });
  return JSON.stringify({
    labels: withoutOurs(metadata.get('labels')),
    annotations: withoutOurs(metadata.get('annotations')),
    owners: metadata.get('ownerReferences'),
    finalizers: metadata.get('finalizers'),
    spec: { ...without(spec, ['nodeName', 'containers']), containers },
  });
}

function without(value: unknown, keys: readonly string[]): JsonObject {
  return Object.fromEntries([...fieldsOf(value)].filter(([key]) => !keys.includes(key)));
}

function nameOf(pod: JsonObject): string {
  return textOf(partsOf(pod).metadata.get('name')) ?? '';
}

function tell(event: AuditEvent): string {
  const { user, stage, code, response } = event;
  const answer = stage === 'Complete' ? String(code) : 'no answer';
  const state = code < 300 ? stateOf(response) : undefined;
  const stored =
    state === undefined
      ? ''
      : ` generation ${state.generation}, ${JSON.stringify(state.cpu)}${state.isMarked ? ', marked' : ''}`;
  return `${new Date(event.at).toISOString()} ${actionOf(event)} by ${user}: ${answer}${stored}`;
}
