/** Decides, when a pod is created, which of its containers get more CPU and how much. */
import { hasRoomFor } from './annotationRoom';
import type { BoostIdentity, CompiledBoost, ValidBoost } from './boost';
import { boostContainers } from './containerBoost';
import type {
  BoostedContainer,
  ContainerDecisions,
  CpuConstraints,
  SkippedContainer,
} from './containerBoost';
import { isObject } from './json';
import { jsonPointer } from './jsonPatch';
import type { JsonPatch, JsonPatchOperation } from './jsonPatch';
import { BOOST_KEY, ENDED_KEY, SKIPPED_KEY } from './keys';
import { readLimitRange } from './limitRange';
import { readPod } from './pod';
import type { CpuResources, PodFacts } from './pod';
import { isLeftAsGuaranteed, isSystemCritical, mightPreempt, POD_CHECKS } from './podChecks';
import type { GuaranteedPods } from './podChecks';
import { sameQuantity } from './quantity';
import { CONTAINER_SKIPS, POD_SKIPS } from './reasons';
import type { ContainerSkipCode, PodSkipCode, RaiseCause } from './reasons';
import { formatRecord, MAX_WRITTEN_LENGTH, parseRecord, tellsBoostedValues } from './record';
import type { BoostedCpu, BoostRecord, ContainerRecord } from './record';
import type { CpuLimits } from './resourcePolicy';
import { matchesSelector } from './selector';

/** Who would take a boost back. A boost that nobody could take back is not given. */
export interface WayBack {
  readonly controller: 'Acting' | 'Missing';
  /** Names of the boosts of the namespace whose condition Revertible is False. */
  readonly notRevertible: ReadonlySet<string>;
}

export interface BoostInput {
  /** The pod as the API server is about to store it: plain JSON, defaults filled in. */
  readonly pod: unknown;
  /** Namespace of the request; a pod under creation need not carry it. */
  readonly namespace: string;
  readonly boosts: Iterable<CompiledBoost>;
  /** The LimitRanges and ResourceQuotas of the namespace, plain JSON; none where left out. */
  readonly limitRanges?: readonly unknown[];
  readonly quotas?: readonly unknown[];
  /** Taken to be there where left out. */
  readonly wayBack?: WayBack;
  /**
   * Whether a pod that could push running pods off their node, and only for its boost, gets it at
   * creation all the same (`Accept`); by default it gets it later, in place.
   */
  readonly preemption?: 'Avoid' | 'Accept';
  /** What becomes of CPU limits where the boost does not say; `Raise` where left out. */
  readonly cpuLimits?: CpuLimits;
  /** `Boost` where left out. */
  readonly guaranteed?: GuaranteedPods;
  /** Epoch milliseconds; written into the record, nothing is decided on it. */
  readonly now: number;
}

export type BoostDecision =
  | {
      readonly kind: 'Boost';
      readonly boost: BoostIdentity;
      readonly containers: readonly BoostedContainer[];
      readonly skipped: readonly SkippedContainer[];
      readonly record: BoostRecord;
      readonly patch: JsonPatch;
    }
  /** The pod is marked only, to be raised in place (decideRaise) once it is on a node. */
  | {
      readonly kind: 'Postpone';
      readonly reason: RaiseCause;
      readonly boost: BoostIdentity;
      readonly containers: readonly BoostedContainer[];
      readonly skipped: readonly SkippedContainer[];
      readonly record: BoostRecord;
      readonly patch: JsonPatch;
    }
  /** The pod carries this very boost: a second call of the webhook, or a copied manifest. */
  | { readonly kind: 'AlreadyBoosted'; readonly boost: BoostIdentity; readonly patch: JsonPatch }
  | {
      readonly kind: 'Skip';
      readonly code: PodSkipCode | ContainerSkipCode;
      readonly message: string;
      /** The boost that would have applied; absent where none selects the pod. */
      readonly boost?: BoostIdentity;
      readonly skipped: readonly SkippedContainer[];
      /** Makes the reason visible on the pod, where the pod may be touched at all. */
      readonly patch: JsonPatch;
    };

/**
 * Decides the boost of a pod under creation; never throws, whatever the pod is.
 *
 * Guarantees:
 * - the patch applies to the very pod that was given, and leaves its QoS class as it was;
 * - CPU is only ever raised, and only where the pod asks for CPU already;
 * - on its own output the answer is `AlreadyBoosted`;
 * - the order of the boosts does not matter.
 */
export function decideBoost(input: BoostInput): BoostDecision {
  const { pod, namespace, boosts } = input;
  const facts = readPod(pod);
  const boost = selectBoost(facts, namespace, boosts);
  if (boost === undefined) return skip('NoBoostMatches', { patch: [] });
  if (!hasMetadata(pod)) return skip('MalformedPod', { boost, patch: [] });
  const refusal =
    POD_CHECKS.find(({ applies }) => applies(facts))?.code ?? withheld(facts, boost, input);
  if (refusal !== undefined) {
    return skip(refusal, { boost, patch: skippedPatch(facts, refusal) });
  }
  const record = recordOf(facts);
  if (record !== undefined && record.containers.size > 0 && !tellsBoostedValues(record)) {
    return skip('BoostedByOther', { boost, patch: [] });
  }
  const containers = boostContainers(facts, boost, record, constraintsOf(boost, input));
  const application = { pod: facts, boost, ...containers, present: record, input };
  return containers.boosted.length === 0 ? skipContainers(application) : applyBoost(application);
}

function constraintsOf(boost: ValidBoost, input: BoostInput): CpuConstraints {
  return {
    limitRange: (input.limitRanges ?? []).flatMap(readLimitRange),
    quotas: input.quotas ?? [],
    cpuLimits: boost.cpuLimits ?? input.cpuLimits ?? 'Raise',
  };
}

/** Whether the scheduler would get to see a larger request for which it may remove other pods. */
function isToPostpone({ pod, boost, boosted, input }: Application): boolean {
  const raisesRequest = ({ index, to }: BoostedContainer) =>
    to.request !== undefined && !sameQuantity(to.request, pod.containers[index]?.cpu.request);
  const isAccepted = input.preemption === 'Accept' || boost.allowsPreemption;
  return !isAccepted && mightPreempt(pod) && boosted.some(raisesRequest);
}

/** The winner among the boosts that select the pod: the oldest, then the first by name. */
export function selectBoost(
  pod: PodFacts,
  namespace: string,
  boosts: Iterable<CompiledBoost>,
): ValidBoost | undefined {
  let winner: ValidBoost | undefined;
  for (const boost of boosts) {
    if (boost.kind === 'Invalid' || boost.namespace !== namespace) continue;
    if (!matchesSelector(boost.selector, pod.labels)) continue;
    if (winner === undefined || comesBefore(boost, winner)) winner = boost;
  }
  return winner;
}

/** The order in which boosts that select the same pod win: the oldest first, then by name. */
export function comesBefore(a: BoostIdentity, b: BoostIdentity): boolean {
  const [createdA, createdB] = [a.createdAt ?? Infinity, b.createdAt ?? Infinity];
  return createdA === createdB ? a.name < b.name : createdA < createdB;
}

/** Whether this boost could not be taken back from this pod. */
function withheld(
  pod: PodFacts,
  boost: ValidBoost,
  { wayBack, guaranteed }: BoostInput,
): PodSkipCode | undefined {
  if (isLeftAsGuaranteed(pod, guaranteed)) return 'GuaranteedPod';
  if (wayBack?.controller === 'Missing') return 'NoController';
  return wayBack?.notRevertible.has(boost.name) === true ? 'NotRevertible' : undefined;
}

function recordOf(pod: PodFacts): BoostRecord | undefined {
  const text = pod.annotations?.get(BOOST_KEY);
  if (text === undefined) return undefined;
  const parsed = parseRecord(text);
  return parsed.kind === 'Record' ? parsed.record : undefined;
}

function hasMetadata(pod: unknown): boolean {
  return isObject(pod) && 'metadata' in pod && isObject(pod.metadata);
}

function skip(
  code: PodSkipCode | ContainerSkipCode,
  rest: {
    readonly boost?: BoostIdentity;
    readonly skipped?: readonly SkippedContainer[];
    readonly patch: JsonPatch;
  },
): BoostDecision {
  const message = { ...POD_SKIPS, ...CONTAINER_SKIPS }[code];
  return { kind: 'Skip', code, message, skipped: [], ...rest };
}

/** One reason stands for the pod: that of the first container which the boost is meant for. */
export function skipCodeOf(skipped: readonly SkippedContainer[]): PodSkipCode | ContainerSkipCode {
  const meant = skipped.find((container) => container.code !== 'NoPolicy') ?? skipped[0];
  return meant?.code ?? 'NoContainerBoosted';
}

function skipContainers(application: Application): BoostDecision {
  const { pod, boost, skipped } = application;
  const code = skipCodeOf(skipped);
  const patch = [...takeBack(application), ...skippedPatch(pod, code)];
  return skip(code, { boost, skipped, patch });
}

/** Gives back what an earlier call has set; the record goes with the last container in it. */
function takeBack({ pod, restored, present }: Application): JsonPatchOperation[] {
  if (restored.length === 0 || present === undefined) return [];
  const containers = recordedContainers(pod, { boosted: [], restored, present });
  const isLast = containers.size === 0;
  return [
    ...restored.flatMap((container) => cpuOperations(pod, container)),
    ...(isLast ? entryOperations('labels', pod.labels, new Map([[BOOST_KEY, undefined]])) : []),
    ...entryOperations(
      'annotations',
      pod.annotations,
      new Map([[BOOST_KEY, isLast ? undefined : formatRecord({ ...present, containers })]]),
    ),
  ];
}

/** Nothing is written on a static pod: the kubelet owns its mirror. */
function skippedPatch(pod: PodFacts, code: PodSkipCode | ContainerSkipCode): JsonPatch {
  if (code === 'StaticPod' || !hasRoomFor(pod.annotations, new Map([[SKIPPED_KEY, code]]))) {
    return [];
  }
  return entryOperations('annotations', pod.annotations, new Map([[SKIPPED_KEY, code]]));
}

interface Application extends ContainerDecisions {
  readonly pod: PodFacts;
  readonly boost: ValidBoost;
  /** The record that the pod carries already. */
  readonly present: BoostRecord | undefined;
  readonly input: Pick<BoostInput, 'preemption' | 'now'>;
}

function applyBoost(application: Application): BoostDecision {
  const { pod, boost, boosted, skipped, restored, present, input } = application;
  const isPostponed = isToPostpone(application);
  if (isPostponed && isSystemCritical(pod)) {
    return skip('SystemCritical', { boost, patch: skippedPatch(pod, 'SystemCritical') });
  }
  const containers = recordedContainers(pod, application);
  const changed = isPostponed ? restored : [...boosted, ...restored];
  const resources = changed.flatMap((container) => cpuOperations(pod, container));
  // Without a change the first timestamp stays, and the answer is the same text again.
  const timestamp = resources.length === 0 ? present?.timestamp : undefined;
  const record: BoostRecord = {
    ...(isPostponed ? ({ state: 'Pending', reason: 'MightPreempt' } as const) : ACTIVE),
    timestamp: timestamp ?? new Date(input.now).toISOString(),
    uid: boost.uid,
    generation: boost.generation,
    containers,
  };
  const text = formatRecord(record);
  if (!hasRoomForRecord(pod, text)) {
    return skip('NoRoomForRecord', { boost, patch: skippedPatch(pod, 'NoRoomForRecord') });
  }
  const patch: JsonPatch = [...resources, ...markOperations(pod, boost, text)];
  if (patch.length === 0) return { kind: 'AlreadyBoosted', boost, patch };
  const decision = { boost, containers: boosted, skipped, record, patch };
  return isPostponed
    ? { kind: 'Postpone', reason: 'MightPreempt', ...decision }
    : { kind: 'Boost', ...decision };
}

const ACTIVE = { state: 'Active' } as const;

export function hasRoomForRecord(pod: PodFacts, text: string): boolean {
  return (
    text.length <= MAX_WRITTEN_LENGTH && hasRoomFor(pod.annotations, new Map([[BOOST_KEY, text]]))
  );
}

/** Puts the marker on the pod, in place of what an earlier life of its manifest has left there. */
export function markOperations(
  pod: PodFacts,
  boost: BoostIdentity,
  recordText: string,
): readonly JsonPatchOperation[] {
  return [
    ...entryOperations('labels', pod.labels, new Map([[BOOST_KEY, boost.name]])),
    ...entryOperations(
      'annotations',
      pod.annotations,
      new Map([
        [BOOST_KEY, recordText],
        [SKIPPED_KEY, undefined],
        [ENDED_KEY, undefined],
      ]),
    ),
  ];
}

/**
 * What the new record says, in the order of the pod, so that the same facts give the same text.
 *
 * What a copied record says about containers that no policy is for any more stays in it: they may
 * still have the CPU of that boost, and give it back at the end of this one.
 */
export function recordedContainers(
  pod: PodFacts,
  { boosted, restored, present }: Pick<Application, 'boosted' | 'restored' | 'present'>,
): ReadonlyMap<string, ContainerRecord> {
  const fresh = new Map(boosted.map((container) => [container.name, recordedOf(container)]));
  const left = new Set(restored.map(({ name }) => name));
  return new Map(
    pod.containers.flatMap(({ name }) => {
      const recorded = fresh.get(name) ?? present?.containers.get(name);
      return recorded === undefined || left.has(name) ? [] : [[name, recorded] as const];
    }),
  );
}

/** Both originals are kept; of the boosted values only those that were set. */
function recordedOf({ from, to }: BoostedContainer): ContainerRecord {
  const boosted: BoostedCpu = {
    ...(to.request === undefined || to.request === from.request ? {} : { request: to.request }),
    ...(to.limit === from.limit ? {} : { limit: to.limit ?? null }),
  };
  return { original: from, boosted };
}

function cpuOperations(
  pod: PodFacts,
  container: { readonly index: number; readonly to: CpuResources },
): JsonPatchOperation[] {
  const present = pod.containers[container.index];
  if (present === undefined) return [];
  const operation = (
    list: 'requests' | 'limits',
    before: string | undefined,
    after: string | undefined,
  ): JsonPatchOperation[] => {
    if (sameQuantity(after, before)) return [];
    const listPath = jsonPointer('spec', 'containers', container.index, 'resources', list);
    const path = `${listPath}/cpu`;
    if (after === undefined) return [{ op: 'remove', path }];
    if (before !== undefined) return [{ op: 'replace', path, value: after }];
    return present[list] === undefined
      ? [{ op: 'add', path: listPath, value: { cpu: after } }]
      : [{ op: 'add', path, value: after }];
  };
  return [
    ...operation('requests', present.cpu.request, container.to.request),
    ...operation('limits', present.cpu.limit, container.to.limit),
  ];
}

/** Sets entries of the pod's labels or annotations, or removes those whose value is undefined. */
function entryOperations(
  map: 'labels' | 'annotations',
  present: ReadonlyMap<string, string> | undefined,
  wanted: ReadonlyMap<string, string | undefined>,
): JsonPatchOperation[] {
  if (present === undefined) {
    const entries = [...wanted].filter(([, value]) => value !== undefined);
    return entries.length === 0
      ? []
      : [{ op: 'add', path: jsonPointer('metadata', map), value: Object.fromEntries(entries) }];
  }
  return [...wanted].flatMap(([key, value]): JsonPatchOperation[] => {
    if (present.get(key) === value) return [];
    const path = jsonPointer('metadata', map, key);
    return value === undefined ? [{ op: 'remove', path }] : [{ op: 'add', path, value }];
  });
}
