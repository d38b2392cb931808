/** Decides the boost of the containers of one pod under one boost. */
import { policyFor } from './boost';
import type { ValidBoost } from './boost';
import { exceedsLimitRange } from './limitRange';
import type { LimitRangeItem } from './limitRange';
import { cpuResources } from './pod';
import type { ContainerFacts, CpuResources, PodFacts } from './pod';
import { qosClassOf } from './qosClass';
import type { ContainerResources } from './qosClass';
import { formatCpu, parseQuantity, sameQuantity } from './quantity';
import { trackedCpu } from './quota';
import type { TrackedCpu } from './quota';
import type { ContainerSkipCode } from './reasons';
import type { BoostRecord } from './record';
import { applyPolicy } from './resourcePolicy';
import type { CpuQuantities, ResourcePolicy } from './resourcePolicy';

export interface BoostedContainer {
  readonly name: string;
  /** Position in `spec.containers`. */
  readonly index: number;
  /** What the container had, and gets back. */
  readonly from: CpuResources;
  readonly to: CpuResources;
}

export interface SkippedContainer {
  readonly name: string;
  readonly code: ContainerSkipCode;
}

export interface ContainerDecisions {
  readonly boosted: readonly BoostedContainer[];
  readonly skipped: readonly SkippedContainer[];
}

/** What the namespace says about the CPU of its pods. */
export interface CpuConstraints {
  readonly limitRange: readonly LimitRangeItem[];
  readonly quotas: readonly unknown[];
}

type ContainerDecision =
  | {
      readonly kind: 'Boosted';
      readonly container: BoostedContainer;
      /** A value was left alone for a quota, so a refusal has that reason. */
      readonly isHeldByQuota: boolean;
    }
  | { readonly kind: 'Skipped'; readonly code: ContainerSkipCode };

/**
 * Decides container by container, in the order of the manifest.
 *
 * The QoS class and the maximum of a LimitRange belong to the whole pod, so each boost is tried on
 * the pod as the boosts before it left it, and left out if the API server would refuse the pod, or
 * its class would change.
 *
 * @param record the record that the pod carries already: a second call of the webhook, or a copied
 *   manifest, must not take boosted values for the original ones
 */
export function boostContainers(
  pod: PodFacts,
  boost: ValidBoost,
  record: BoostRecord | undefined,
  constraints: CpuConstraints,
): ContainerDecisions {
  const boosted: BoostedContainer[] = [];
  const skipped: SkippedContainer[] = [];
  const shape: ContainerResources[] = pod.containers.map((container) =>
    withCpu(container, originalCpu(container, boost, record)),
  );
  const classOf = () => qosClassOf([...shape, ...pod.initContainers]);
  const classBefore = classOf();
  const isRefusedNow = () =>
    exceedsLimitRange(constraints.limitRange, {
      containers: shape,
      initContainers: pod.initContainers,
    });
  // A pod that only its boost would let in could never go back.
  const isRefused = isRefusedNow();
  const tracked = trackedCpu(constraints.quotas, {
    qosClass: classBefore,
    priorityClassName: pod.priorityClassName ?? '',
    hasDeadline: pod.hasDeadline,
  });
  const problem = (isHeldByQuota: boolean): ContainerSkipCode | undefined => {
    if (classOf() !== classBefore) return isHeldByQuota ? 'QuotaPresent' : 'WouldChangeQosClass';
    return isRefused || isRefusedNow() ? 'LimitRangeExceeded' : undefined;
  };
  for (const [position, container] of pod.containers.entries()) {
    const decision = decideContainer(container, boost, record, tracked);
    if (decision.kind === 'Skipped') {
      skipped.push({ name: container.name, code: decision.code });
      continue;
    }
    const shapeBefore = shape[position] ?? container;
    shape[position] = withCpu(container, decision.container.to);
    const code = problem(decision.isHeldByQuota);
    if (code === undefined) {
      boosted.push(decision.container);
    } else {
      shape[position] = shapeBefore;
      skipped.push({ name: container.name, code });
    }
  }
  return { boosted, skipped };
}

function decideContainer(
  container: ContainerFacts,
  boost: ValidBoost,
  record: BoostRecord | undefined,
  tracked: TrackedCpu,
): ContainerDecision {
  const policy = policyFor(boost, container.name);
  if (policy === undefined) return { kind: 'Skipped', code: 'NoPolicy' };
  const from = originalCpu(container, boost, record);
  const code = unboostable(container, from);
  if (code !== undefined) return { kind: 'Skipped', code };
  const present = quantitiesOf(from);
  const wanted = applyPolicy(policy.resources, present);
  const raised = heldByQuota(present, wanted, tracked);
  const isHeldByQuota = raised.request !== wanted.request || raised.limit !== wanted.limit;
  const to = textsOfRaised(from, present, raised);
  if (to.request === from.request && to.limit === from.limit) {
    return { kind: 'Skipped', code: isHeldByQuota ? 'QuotaPresent' : 'NothingToRaise' };
  }
  if (isAbove(raised.request, raised.limit)) {
    return { kind: 'Skipped', code: isHeldByQuota ? 'QuotaPresent' : 'RequestAboveLimit' };
  }
  const { name, index } = container;
  return { kind: 'Boosted', container: { name, index, from, to }, isHeldByQuota };
}

/** A value that a quota counts stays as it is; the other one may be raised. */
function heldByQuota(
  present: CpuQuantities,
  wanted: CpuQuantities,
  tracked: TrackedCpu,
): CpuQuantities {
  const request = tracked.requests ? present.request : wanted.request;
  const limit = tracked.limits ? present.limit : wanted.limit;
  return {
    ...(request === undefined ? {} : { request }),
    ...(limit === undefined ? {} : { limit }),
  };
}

function unboostable(container: ContainerFacts, cpu: CpuResources): ContainerSkipCode | undefined {
  if (cpu.request === undefined && cpu.limit === undefined) return 'NoCpu';
  if ([cpu.request, cpu.limit].some(isUnreadable)) return 'UnreadableQuantity';
  if (container.restartsOnCpuResize) return 'RestartsOnResize';
  return undefined;
}

/** A negative quantity is refused by the API server, and would only become lower by a percentage. */
function isUnreadable(text: string | undefined): boolean {
  if (text === undefined) return false;
  const quantity = parseQuantity(text);
  return quantity === undefined || quantity < 0n;
}

function isAbove(request: bigint | undefined, limit: bigint | undefined): boolean {
  return request !== undefined && limit !== undefined && request > limit;
}

function quantitiesOf(cpu: CpuResources): CpuQuantities {
  const request = parseQuantity(cpu.request);
  const limit = parseQuantity(cpu.limit);
  return {
    ...(request === undefined ? {} : { request }),
    ...(limit === undefined ? {} : { limit }),
  };
}

/** A value that was not raised keeps its own text, so that no patch touches it. */
function textsOfRaised(
  texts: CpuResources,
  present: CpuQuantities,
  raised: CpuQuantities,
): CpuResources {
  const text = (key: 'request' | 'limit') => {
    const value = raised[key];
    return value === undefined || value === present[key] ? texts[key] : formatCpu(value);
  };
  return cpuResources(text('request'), text('limit'));
}

/**
 * What the container has without any boost.
 *
 * A recorded original stands, key by key, where the present value is just what the boost makes of
 * it, and more. Anything else was changed since, or written by a stranger: then the present value
 * counts, in the words that stand in the pod.
 */
function originalCpu(
  container: ContainerFacts,
  boost: ValidBoost,
  record: BoostRecord | undefined,
): CpuResources {
  const recorded = record?.containers.get(container.name);
  const policy = policyFor(boost, container.name);
  if (recorded === undefined || policy === undefined) return container.cpu;
  const original = (key: 'request' | 'limit') => {
    const present = container.cpu[key];
    const candidate = recorded.original[key];
    const stands =
      !sameQuantity(present, candidate) &&
      sameQuantity(present, recorded.boosted[key]) &&
      sameQuantity(present, raisedText(policy.resources, key, candidate));
    return stands ? candidate : present;
  };
  return cpuResources(original('request'), original('limit'));
}

function raisedText(
  policy: ResourcePolicy,
  key: 'request' | 'limit',
  text: string | undefined,
): string | undefined {
  const quantity = parseQuantity(text);
  if (quantity === undefined) return undefined;
  const raised = applyPolicy(policy, { [key]: quantity })[key];
  return raised === undefined ? undefined : formatCpu(raised);
}

function withCpu(container: ContainerFacts, cpu: CpuResources): ContainerResources {
  return {
    requests: withKey(container.requests, cpu.request),
    limits: withKey(container.limits, cpu.limit),
  };
}

function withKey(
  list: ReadonlyMap<string, string> | undefined,
  text: string | undefined,
): ReadonlyMap<string, string> | undefined {
  return text === undefined ? list : new Map([...(list ?? []), ['cpu', text]]);
}
