/** The status of a boost, computed from the pods that carry it. */
import type { CompiledBoost } from './boost';
import { boostConditions } from './boostConditions';
import type { BoostSurroundings, StatusCondition } from './boostConditions';
import { describeDuration } from './durationPolicy';
import { fieldsOf, integerOf } from './json';
import { BOOST_KEY } from './keys';
import { readMetadata } from './pod';
import { parseRecord } from './record';
import { describePolicy } from './resourcePolicy';

export interface BoostStatus {
  readonly observedGeneration?: number;
  /** How much, and until when, in a few characters; empty while the boost is invalid. */
  readonly policy: string;
  readonly until: string;
  /** Containers that are boosted now, and that were boosted so far. */
  readonly activeContainerBoosts: number;
  readonly totalContainerBoosts: number;
  /** Pods that were boosted so far, and of these the ones whose boost has ended. */
  readonly boostedPods: number;
  readonly revertedPods: number;
  /** Pods whose revert does not get on by itself. */
  readonly stuckPods: number;
  readonly conditions: readonly StatusCondition[];
}

/**
 * What a status cannot tell: which pods its totals have counted already. Kept in memory by whoever
 * writes the status; without one the stored status is taken as the starting point.
 */
export interface BoostTally {
  readonly totalContainers: number;
  readonly totalPods: number;
  /** Uids of the pods that are boosted now, all of them counted. */
  readonly counted: ReadonlySet<string>;
}

export interface BoostStatusInput {
  readonly boost: CompiledBoost;
  /** The pods that carry the boost's label, as the API server delivered them. */
  readonly pods: readonly unknown[];
  /** How many of them are stuck. */
  readonly stuckPods: number;
  /** Nothing is known of them where left out. */
  readonly surroundings?: BoostSurroundings;
  /** The status as it is stored. */
  readonly previous: unknown;
  readonly tally: BoostTally | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

export interface BoostStatusResult {
  readonly status: BoostStatus;
  readonly tally: BoostTally;
}

/** Policies shown in the POLICY column; the rest is one more sign, so that the table stays narrow. */
const SHOWN_POLICIES = 3;

/**
 * Computes the status. The totals never go down and are "at least": pods that came and went while
 * nobody counted are missing.
 */
export function boostStatus(input: BoostStatusInput): BoostStatusResult {
  const { boost, surroundings = {}, previous, now } = input;
  const active = activePods(input.pods);
  const activeContainers = sum(active.values());
  const counted = count(input.tally ?? startingTally(previous, active), active);
  const tally = notBelowStored(counted, previous);
  const status: BoostStatus = {
    ...(boost.generation === undefined ? {} : { observedGeneration: boost.generation }),
    ...describe(boost),
    activeContainerBoosts: activeContainers,
    totalContainerBoosts: tally.totalContainers,
    boostedPods: tally.totalPods,
    revertedPods: tally.totalPods - active.size,
    stuckPods: input.stuckPods,
    conditions: boostConditions(boost, surroundings, previous, now),
  };
  return { status, tally };
}

/**
 * Boosted containers by pod uid. A pod whose record cannot be read counts with no container, one
 * whose boost was taken back until it has a node does not count.
 */
function activePods(pods: readonly unknown[]): ReadonlyMap<string, number> {
  const active = new Map<string, number>();
  for (const pod of pods) {
    const { uid, annotations } = readMetadata(pod);
    const text = annotations?.get(BOOST_KEY);
    if (uid === undefined || text === undefined) continue;
    const parsed = parseRecord(text);
    if (parsed.kind === 'Record' && parsed.record.state === 'Pending') continue;
    active.set(uid, parsed.kind === 'Record' ? parsed.record.containers.size : 0);
  }
  return active;
}

/**
 * The tally of a writer that has just started. As many of today's pods as the stored status calls
 * active were counted before; the surplus is new.
 */
function startingTally(previous: unknown, active: ReadonlyMap<string, number>): BoostTally {
  const stored = (key: StoredCount) => storedCount(previous, key);
  const activePodsBefore = stored('boostedPods') - stored('revertedPods');
  return {
    totalContainers:
      stored('totalContainerBoosts') +
      Math.max(0, sum(active.values()) - stored('activeContainerBoosts')),
    totalPods: stored('boostedPods') + Math.max(0, active.size - Math.max(0, activePodsBefore)),
    counted: new Set(active.keys()),
  };
}

type StoredCount = Extract<keyof BoostStatus, `${string}Pods` | `${string}ContainerBoosts`>;

function storedCount(status: unknown, key: StoredCount): number {
  return Math.max(0, integerOf(fieldsOf(status).get(key)) ?? 0);
}

/** Another writer, such as the leader in between, may have counted more. */
function notBelowStored(tally: BoostTally, previous: unknown): BoostTally {
  return {
    totalContainers: Math.max(tally.totalContainers, storedCount(previous, 'totalContainerBoosts')),
    totalPods: Math.max(tally.totalPods, storedCount(previous, 'boostedPods')),
    counted: tally.counted,
  };
}

function count(tally: BoostTally, active: ReadonlyMap<string, number>): BoostTally {
  const fresh = [...active].filter(([uid]) => !tally.counted.has(uid));
  return {
    totalContainers: tally.totalContainers + sum(fresh.map(([, containers]) => containers)),
    totalPods: tally.totalPods + fresh.length,
    counted: new Set(active.keys()),
  };
}

function describe(boost: CompiledBoost): { policy: string; until: string } {
  if (boost.kind === 'Invalid') return { policy: '', until: '' };
  const policies = boost.policies.map((policy) => describePolicy(policy.resources));
  const shown = policies.slice(0, SHOWN_POLICIES).join(',');
  return {
    policy: policies.length > SHOWN_POLICIES ? `${shown},…` : shown,
    until: describeDuration(boost.duration),
  };
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
