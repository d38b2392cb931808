/** Who leads, judged from one Lease: client-go's rules, pure, on local observation and monotonic time. */
import { fieldsOf, integerOf, textOf } from '../boost-engine';
import type { JsonObject } from './jsonObject';
import { identityOf } from './jsonObject';

export interface LeaseSettings {
  /** How long others wait for a leader that says nothing; milliseconds, whole seconds. */
  readonly leaseDurationMs: number;
  /** After this time without a renewal a leader stops acting. */
  readonly renewDeadlineMs: number;
  /** Time between two renewals. */
  readonly retryPeriodMs: number;
}

/** The fields of `spec` in k8s.io/api/coordination/v1 that an election uses. */
export interface LeaseRecord {
  /** Empty where the last leader has released the lease. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquireTime: string | undefined;
  readonly transitions: number;
}

/** A state of the Lease, and since when this process has seen just that. */
export interface ObservedLease {
  readonly record: LeaseRecord;
  readonly resourceVersion: string;
  /** Monotonic milliseconds. */
  readonly since: number;
}

export type Claim =
  /** Somebody else leads; the lease expires at `until` (monotonic milliseconds) unless it changes. */
  | { readonly kind: 'Wait'; readonly until: number }
  /** Take it, or go on holding it: write this spec over what was observed. */
  | { readonly kind: 'Write'; readonly spec: JsonObject };

/** Seconds of a lease that was released: with 0 the API server would refuse it. */
const RELEASED_DURATION_SECONDS = 1;

/**
 * Takes in a Lease as it was read or watched.
 *
 * The clock of an observation starts again whenever the object has changed, and never because of
 * the time that is written in it: clocks of two machines need not agree.
 */
export function observeLease(
  before: ObservedLease | undefined,
  lease: JsonObject,
  now: number,
): ObservedLease | undefined {
  const identity = identityOf(lease);
  if (identity === undefined) return before;
  const { resourceVersion } = identity;
  if (before?.resourceVersion === resourceVersion) return before;
  return { record: readRecord(lease), resourceVersion, since: now };
}

/**
 * What a process may do with the lease now.
 *
 * @param observed undefined where there is no Lease yet
 * @param now monotonic milliseconds
 * @param wallTime epoch milliseconds, written for people to read
 */
export function claimLease(
  observed: ObservedLease | undefined,
  identity: string,
  settings: LeaseSettings,
  now: number,
  wallTime: number,
): Claim {
  if (observed === undefined) return write(identity, settings, wallTime, undefined);
  const { record, since } = observed;
  const expiry = since + record.durationMs;
  if (record.holder !== identity && record.holder !== '' && now < expiry) {
    return { kind: 'Wait', until: expiry };
  }
  return write(identity, settings, wallTime, record);
}

/** The spec that gives the lease back, so that the next leader need not wait for it to expire. */
export function releasedSpec(record: LeaseRecord, wallTime: number): JsonObject {
  return {
    holderIdentity: '',
    leaseDurationSeconds: RELEASED_DURATION_SECONDS,
    acquireTime: microTime(wallTime),
    renewTime: microTime(wallTime),
    leaseTransitions: record.transitions,
  };
}

function write(
  identity: string,
  { leaseDurationMs }: LeaseSettings,
  wallTime: number,
  record: LeaseRecord | undefined,
): Claim {
  const isRenewal = record?.holder === identity;
  const transitions = record === undefined ? 0 : record.transitions + (isRenewal ? 0 : 1);
  const now = microTime(wallTime);
  return {
    kind: 'Write',
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: leaseDurationMs / 1_000,
      acquireTime: isRenewal ? (record.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: transitions,
    },
  };
}

function readRecord(lease: JsonObject): LeaseRecord {
  const spec = fieldsOf(lease.spec);
  return {
    holder: textOf(spec.get('holderIdentity')) ?? '',
    durationMs: Math.max(0, integerOf(spec.get('leaseDurationSeconds')) ?? 0) * 1_000,
    acquireTime: textOf(spec.get('acquireTime')),
    transitions: Math.max(0, integerOf(spec.get('leaseTransitions')) ?? 0),
  };
}

/** metav1.MicroTime: six digits, or the API server refuses it. */
function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}
