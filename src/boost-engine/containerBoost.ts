/** Decides the boost of the containers of one pod under one boost. */
import { policyFor } from './boost';
import type { ValidBoost } from './boost';
import { addsCpuLimit, exceedsLimitRange } from './limitRange';
import type { LimitRangeItem } from './limitRange';
import { cpuResources } from './pod';
import type { ContainerFacts, CpuResources, PodFacts } from './pod';
import { qosClassOf } from './qosClass';
import type { ContainerResources } from './qosClass';
import { formatCpu, parseQuantity, sameQuantity } from './quantity';
import { trackedCpu } from './quota';
import type { TrackedCpu } from './quota';
import type { ContainerSkipCode } from './reasons';
import { lacksLimit } from './record';
import type { BoostRecord } from './record';
import { boostedCpu, cpuQuantities } from './resourcePolicy';
import type { CpuLimits, CpuQuantities } from './resourcePolicy';

export interface BoostedContainer {
  readonly name: string;
  /** Position in `spec.containers`. */
  readonly index: number;
  /** What the container had, and gets back. */
  readonly from: CpuResources;
  /** Without the limit where that is removed. */
  readonly to: CpuResources;
}

export interface SkippedContainer {
  readonly name: string;
  readonly code: ContainerSkipCode;
}

/** A container that an earlier call has boosted, and that may not stay so. */
export interface RestoredContainer {
  readonly name: string;
  /** Position in `spec.containers`. */
  readonly index: number;
  readonly to: CpuResources;
}

export interface ContainerDecisions {
  readonly boosted: readonly BoostedContainer[];
  readonly skipped: readonly SkippedContainer[];
  /** Those of the skipped ones that get their recorded original back. */
  readonly restored: readonly RestoredContainer[];
}

/** What holds beside the boost: for the CPU of the namespace's pods, and for limits. */
export interface CpuConstraints {
  readonly limitRange: readonly LimitRangeItem[];
  readonly quotas: readonly unknown[];
  readonly cpuLimits: CpuLimits;
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
 * A container that carries the CPU of an earlier call, and that may not be boosted after all (another
 * webhook has changed the pod in between), gets its own CPU back here: at the end of the boost that
 * might restart it, or be refused. One without a policy keeps it until then; its boost may just not
 * have been heard of here.
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
  const restored: RestoredContainer[] = [];
  const originals = pod.containers.map((container) => ({
    container,
    cpu: originalCpu(container, boost, record),
  }));
  const shape: ContainerResources[] = originals.map(({ container, cpu }) =>
    withCpu(container, cpu),
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
  const tryOn = (
    position: number,
    { container, cpu }: OriginalContainer,
    cpuLimits: CpuLimits,
  ): ContainerDecision => {
    const decision = decideContainer({ container, cpu }, { boost, tracked, cpuLimits });
    if (decision.kind === 'Skipped') return decision;
    const before = shape[position] ?? container;
    shape[position] = withCpu(container, decision.container.to);
    const code = problem(decision.isHeldByQuota);
    if (code === undefined) return decision;
    shape[position] = before;
    return { kind: 'Skipped', code };
  };
  const tryInTurn = (position: number, original: OriginalContainer): ContainerDecision => {
    const [first, second] = waysOfLimits(original, constraints);
    const decision = tryOn(position, original, first);
    return decision.kind === 'Boosted' || second === undefined
      ? decision
      : tryOn(position, original, second);
  };
  for (const [position, original] of originals.entries()) {
    const { container, cpu } = original;
    const isRaised = !isSame(cpu, container.cpu);
    const first = tryInTurn(position, original);
    // What an earlier call gave may be too much by now, and what this one would give may not be.
    const decision =
      first.kind === 'Skipped' && isRaised
        ? tryInTurn(position, { container: { ...container, cpu }, cpu })
        : first;
    if (decision.kind === 'Boosted') {
      boosted.push(decision.container);
      continue;
    }
    const { name, index } = container;
    skipped.push({ name, code: decision.code });
    // What the namespace would refuse is nobody's original: the pod may be let in as it is.
    if (isRaised && !isRefused) restored.push({ name, index, to: cpu });
  }
  return { boosted, skipped, restored };
}

/**
 * What is tried with a container's limit, the first that may be. One that an earlier call has removed
 * stays so if it may: admission lowers no boost.
 */
function waysOfLimits(
  { container, cpu }: OriginalContainer,
  { cpuLimits, limitRange }: CpuConstraints,
): readonly [CpuLimits, CpuLimits?] {
  const isRemoved = container.cpu.limit === undefined && cpu.limit !== undefined;
  const otherwise = cpuLimits === 'Remove' ? 'Raise' : cpuLimits;
  const isTried = (cpuLimits === 'Remove' || isRemoved) && !addsCpuLimit(limitRange);
  return isTried ? ['Remove', otherwise] : [otherwise];
}

interface ContainerRules {
  readonly boost: ValidBoost;
  readonly tracked: TrackedCpu;
  readonly cpuLimits: CpuLimits;
}

function decideContainer(
  { container, cpu: from }: OriginalContainer,
  { boost, tracked, cpuLimits }: ContainerRules,
): ContainerDecision {
  const policy = policyFor(boost, container.name);
  if (policy === undefined) return { kind: 'Skipped', code: 'NoPolicy' };
  const code = unboostable(container, from);
  if (code !== undefined) return { kind: 'Skipped', code };
  const own = quantitiesOf(from);
  const wanted = atLeast(quantitiesOf(container.cpu), boostedCpu(policy.resources, own, cpuLimits));
  const raised = heldByQuota(own, wanted, tracked);
  const isHeldByQuota = raised.request !== wanted.request || raised.limit !== wanted.limit;
  const to = textsOfRaised(from, own, raised);
  if (to.request === from.request && to.limit === from.limit) {
    return { kind: 'Skipped', code: isHeldByQuota ? 'QuotaPresent' : 'NothingToRaise' };
  }
  if (isAbove(raised.request, raised.limit)) {
    return { kind: 'Skipped', code: isHeldByQuota ? 'QuotaPresent' : 'RequestAboveLimit' };
  }
  const { name, index } = container;
  return { kind: 'Boosted', container: { name, index, from, to }, isHeldByQuota };
}

/** An earlier call may have given more, by the boost as it was then: admission lowers no boost. */
function atLeast(present: CpuQuantities, wanted: CpuQuantities): CpuQuantities {
  const larger = (key: 'request' | 'limit') => {
    const [a, b] = [present[key], wanted[key]];
    return a !== undefined && b !== undefined && a > b ? a : b;
  };
  return cpuQuantities(larger('request'), larger('limit'));
}

/** A value that a quota counts stays as it is; the other one may be raised. */
function heldByQuota(
  present: CpuQuantities,
  wanted: CpuQuantities,
  tracked: TrackedCpu,
): CpuQuantities {
  return cpuQuantities(
    tracked.requests ? present.request : wanted.request,
    tracked.limits ? present.limit : wanted.limit,
  );
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
  return cpuQuantities(parseQuantity(cpu.request), parseQuantity(cpu.limit));
}

/** A value that was not raised keeps its own text, so that no patch touches it. */
function textsOfRaised(
  texts: CpuResources,
  present: CpuQuantities,
  raised: CpuQuantities,
): CpuResources {
  const text = (key: 'request' | 'limit') => {
    const value = raised[key];
    if (value === undefined) return undefined;
    return value === present[key] ? texts[key] : formatCpu(value);
  };
  return cpuResources(text('request'), text('limit'));
}

/** A container with what it has without any boost. */
interface OriginalContainer {
  readonly container: ContainerFacts;
  readonly cpu: CpuResources;
}

/**
 * A recorded original stands, key by key, where the present value is just what the record says was
 * set, and more (no limit is more than any): by this boost or by what it was a moment ago
 * (docs/adr/0007). Anything else was changed since: then the present value counts, in the words that
 * stand in the pod.
 */
function originalCpu(
  container: ContainerFacts,
  boost: ValidBoost,
  record: BoostRecord | undefined,
): CpuResources {
  const recorded = record?.containers.get(container.name);
  const isJudged = policyFor(boost, container.name) !== undefined;
  const { request, limit } = container.cpu;
  if (recorded === undefined || !isJudged || isUnreadable(request) || isUnreadable(limit)) {
    return container.cpu;
  }
  const original = (key: 'request' | 'limit') => {
    const present = container.cpu[key];
    const candidate = recorded.original[key];
    const isRaised = isAbove(parseQuantity(present), parseQuantity(candidate));
    const stands = sameQuantity(present, recorded.boosted[key] ?? undefined) && isRaised;
    return stands || (key === 'limit' && lacksLimit(container.cpu, recorded)) ? candidate : present;
  };
  const cpu = cpuResources(original('request'), original('limit'));
  // Half of it was changed since, and the other half does not fit it any more.
  return isAbove(parseQuantity(cpu.request), parseQuantity(cpu.limit)) ? container.cpu : cpu;
}

function isSame(a: CpuResources, b: CpuResources): boolean {
  return a.request === b.request && a.limit === b.limit;
}

function withCpu(container: ContainerFacts, cpu: CpuResources): ContainerResources {
  return {
    requests: withCpuKey(container.requests, cpu.request),
    limits: withCpuKey(container.limits, cpu.limit),
  };
}

function withCpuKey(
  list: ReadonlyMap<string, string> | undefined,
  text: string | undefined,
): ReadonlyMap<string, string> | undefined {
  const others = [...(list ?? [])].filter(([resource]) => resource !== 'cpu');
  return text === undefined ? new Map(others) : new Map([...others, ['cpu', text]]);
}
