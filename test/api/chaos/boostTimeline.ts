/** When each boost was there and what it said, from the audit log; and so when a pod's boost should end. */
import { fieldsOf } from '../../../src/boost-engine';
import type { AuditEvent } from '../../support/auditLog';
import { BOOSTS, readBoostSpec } from './shapes';
import type { BoostName, BoostSpec } from './shapes';

/** A stretch of time over which a boost did not change. */
export interface BoostSpan {
  /** Epoch milliseconds: when the change before it was asked for, and when the next one was done. */
  readonly from: number;
  readonly to: number;
  /** Undefined while the boost is not there. */
  readonly spec: BoostSpec | undefined;
}

export type BoostTimelines = Readonly<Record<BoostName, readonly BoostSpan[]>>;

/** What the end of a boost is counted from; epoch milliseconds. */
export interface PodMoments {
  readonly boostedAt: number;
  /** As PodScheduled says it, in whole seconds. */
  readonly scheduledAt: number | undefined;
  readonly readyAt: number | undefined;
}

export function boostTimelines(events: readonly AuditEvent[]): BoostTimelines {
  const timeline = (boost: BoostName): readonly BoostSpan[] => spansOf(boost, events);
  const [first, second, third, fourth] = BOOSTS;
  return {
    [first]: timeline(first),
    [second]: timeline(second),
    [third]: timeline(third),
    [fourth]: timeline(fourth),
  };
}

function spansOf(boost: BoostName, events: readonly AuditEvent[]): readonly BoostSpan[] {
  const changes = events
    .filter((event) => isChangeOf(boost, event))
    .sort((a, b) => a.at - b.at)
    .map((event) => ({
      receivedAt: event.receivedAt,
      at: event.at,
      spec:
        event.verb === 'delete' ? undefined : readBoostSpec(fieldsOf(event.response).get('spec')),
    }));
  return changes.map(({ receivedAt, spec }, index) => ({
    from: receivedAt,
    to: changes[index + 1]?.at ?? Infinity,
    spec,
  }));
}

function isChangeOf(boost: BoostName, event: AuditEvent): boolean {
  return (
    event.resource === 'startupcpuboosts' &&
    event.subresource === '' &&
    event.name === boost &&
    event.stage === 'Complete' &&
    event.code < 300
  );
}

/** Whether the boost was there all the time from one moment to the other. */
export function isPresent(spans: readonly BoostSpan[], from: number, to: number): boolean {
  const [first] = spans;
  if (first === undefined || first.from > from) return false;
  return spans.every((span) => span.spec !== undefined || span.to < from || span.from > to);
}

/** What the boost said at some moment of this time. */
export function specsWithin(
  spans: readonly BoostSpan[],
  from: number,
  to: number,
): readonly BoostSpec[] {
  return spans.flatMap((span) =>
    span.spec !== undefined && span.from <= to && span.to >= from ? [span.spec] : [],
  );
}

/** The moment at which the boost of a pod ended; undefined if it never did. */
export function endOfBoost(
  spans: readonly BoostSpan[],
  moments: PodMoments,
  deletedGraceMs: number,
): number | undefined {
  for (const span of spans) {
    const end = Math.max(endWithin(span, moments, deletedGraceMs), span.from, moments.boostedAt);
    if (end < span.to) return end;
  }
  return undefined;
}

/**
 * Whether a process that goes by what it knew at some moment since `staleMs` could find that the
 * boost had ended.
 */
export function mayHaveEnded(
  spans: readonly BoostSpan[],
  moments: PodMoments,
  at: number,
  { deletedGraceMs, staleMs }: { readonly deletedGraceMs: number; readonly staleMs: number },
): boolean {
  // PodScheduled has whole seconds, and the clocks of client and server differ by their rounding.
  const roundingMs = 1_000;
  return spans.some(
    (span) =>
      span.from <= at &&
      span.to >= at - staleMs &&
      endWithin(span, moments, deletedGraceMs) <= at + roundingMs,
  );
}

function endWithin({ from, spec }: BoostSpan, moments: PodMoments, deletedGraceMs: number): number {
  if (spec === undefined) return from + deletedGraceMs;
  const byTime =
    spec.seconds === undefined || moments.scheduledAt === undefined
      ? Infinity
      : moments.scheduledAt + spec.seconds * 1_000;
  const byReady = spec.endsWhenReady ? (moments.readyAt ?? Infinity) : Infinity;
  return Math.min(byTime, byReady);
}
