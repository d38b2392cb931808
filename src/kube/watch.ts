/** The watch of one collection as closed states and one step; nothing in here does I/O. */
import type { ApiFailure } from './apiFailure';
import { isJsonObject } from './jsonObject';
import type { JsonObject, ListPage } from './jsonObject';
import type { WatchEvent } from './watchStream';

/**
 * Each state says what its driver does next; `failures` counts what the server has answered since the
 * watch last ran well.
 */
export type WatchState =
  EmptyState | ListingState | WatchingState | CheckingState | BackingOffState;

/** Lists the first page. Entered at start, and when the known version is of no more use. */
export interface EmptyState {
  readonly kind: 'Empty';
  readonly failures: number;
}

/** Lists the next page. Entered while pages follow; left with the last page. */
export interface ListingState {
  readonly kind: 'Listing';
  readonly failures: number;
  readonly items: readonly JsonObject[];
  readonly continueToken: string;
}

/** Opens or reads the stream. Entered with a complete list; left when the stream ends. */
export interface WatchingState {
  readonly kind: 'Watching';
  readonly failures: number;
  readonly resourceVersion: string;
}

/**
 * Lists the collection exactly as it was at the version the watch has reached: whatever differs
 * from the cache is a lost event, never one on its way. Entered when a check is due.
 */
export interface CheckingState {
  readonly kind: 'Checking';
  readonly failures: number;
  readonly resourceVersion: string;
  readonly items: readonly JsonObject[];
  readonly continueToken?: string;
}

/** Waits. Entered after a failure; left for the state that failed, or for Empty. */
export interface BackingOffState {
  readonly kind: 'BackingOff';
  readonly ms: number;
  readonly then: EmptyState | ListingState | WatchingState;
}

export type WatchInput =
  | { readonly kind: 'PageListed'; readonly page: ListPage }
  /** Discovery confirms that the server does not serve the collection. */
  | { readonly kind: 'CollectionAbsent' }
  | { readonly kind: 'EventRead'; readonly event: WatchEvent }
  | ({ readonly kind: 'Closed' } & Ending)
  | ({ readonly kind: 'Failed'; readonly failure: ApiFailure } & Ending)
  | { readonly kind: 'CheckDue' }
  /** The stream was ended in order to open it anew. */
  | { readonly kind: 'Reopened' }
  | { readonly kind: 'Slept' };

interface Ending {
  /** How long the stream had been open, 0 for a list; milliseconds. */
  readonly livedMs: number;
  /** In [0, 1): spreads the retries of many clients. */
  readonly random: number;
}

/** What the cache takes over. */
export type WatchChange =
  | {
      readonly kind: 'Replaced';
      readonly items: readonly JsonObject[];
      readonly cause: 'Listed' | 'Absent' | 'Checked';
    }
  | { readonly kind: 'Upserted'; readonly object: JsonObject }
  | { readonly kind: 'Removed'; readonly object: JsonObject };

export interface WatchStep {
  readonly state: WatchState;
  readonly change?: WatchChange;
}

export const INITIAL_WATCH_STATE: EmptyState = { kind: 'Empty', failures: 0 };

/** client-go's reflector: https://github.com/kubernetes/client-go/blob/v0.36.3/tools/cache/reflector.go */
const FIRST_BACKOFF_MS = 800;
const LONGEST_BACKOFF_MS = 30_000;
/**
 * Between two attempts that nobody answers. It does not grow: they cost the server nothing, and it is
 * back within seconds, with pods that are waiting.
 */
const UNANSWERED_PAUSE_MS = 2_000;
/** A stream that was open for so long worked: the next failure is a new one. */
const STEADY_MS = 10_000;
/** So many failures in a row may be the version's fault (a restored etcd is behind it): list anew. */
const FAILURES_BEFORE_RELIST = 5;
/** How long an absent CRD may go unnoticed after it is installed. */
const ABSENT_RETRY_MS = 30_000;

/**
 * Takes one input in.
 *
 * Guarantees: a list replaces the cache only when its last page is in; a Gone of either form leads
 * to Empty; no input leads to a state without a next action. An input that the state does not
 * expect changes nothing.
 */
export function stepWatch(state: WatchState, input: WatchInput): WatchStep {
  switch (state.kind) {
    case 'Empty':
    case 'Listing':
      return stepListing(state, input);
    case 'Watching':
      return stepWatching(state, input);
    case 'Checking':
      return stepChecking(state, input);
    case 'BackingOff':
      return { state: input.kind === 'Slept' ? state.then : state };
  }
}

function stepListing(state: EmptyState | ListingState, input: WatchInput): WatchStep {
  const { failures } = state;
  switch (input.kind) {
    case 'PageListed': {
      const items =
        state.kind === 'Empty' ? input.page.items : state.items.concat(input.page.items);
      return input.page.continue === undefined
        ? {
            state: { kind: 'Watching', failures, resourceVersion: input.page.resourceVersion },
            change: { kind: 'Replaced', items, cause: 'Listed' },
          }
        : { state: { kind: 'Listing', failures, items, continueToken: input.page.continue } };
    }
    case 'CollectionAbsent':
      return {
        state: { kind: 'BackingOff', ms: ABSENT_RETRY_MS, then: INITIAL_WATCH_STATE },
        change: { kind: 'Replaced', items: [], cause: 'Absent' },
      };
    case 'Failed':
      return { state: failed(state, input, input.failure) };
    case 'EventRead':
    case 'Closed':
    case 'CheckDue':
    case 'Reopened':
    case 'Slept':
      return { state };
  }
}

function stepWatching(state: WatchingState, input: WatchInput): WatchStep {
  switch (input.kind) {
    case 'EventRead':
      return {
        state: {
          ...state,
          resourceVersion: versionOf(input.event.object) ?? state.resourceVersion,
        },
        ...changeOf(input.event),
      };
    case 'Closed':
      return input.livedMs >= STEADY_MS
        ? { state: { ...state, failures: 0 } }
        : { state: failed(state, input) };
    case 'Failed':
      return { state: failed(state, input, input.failure) };
    case 'CheckDue':
      return { state: { ...state, kind: 'Checking', items: [] } };
    case 'PageListed':
    case 'CollectionAbsent':
    case 'Reopened':
    case 'Slept':
      return { state };
  }
}

function stepChecking(state: CheckingState, input: WatchInput): WatchStep {
  const { failures, resourceVersion } = state;
  switch (input.kind) {
    case 'PageListed': {
      const items = state.items.concat(input.page.items);
      return input.page.continue === undefined
        ? {
            state: { kind: 'Watching', failures, resourceVersion },
            change: { kind: 'Replaced', items, cause: 'Checked' },
          }
        : { state: { ...state, items, continueToken: input.page.continue } };
    }
    case 'Failed':
      // The next check comes by itself; the watch goes on meanwhile.
      return {
        state: failed({ kind: 'Watching', failures, resourceVersion }, input, input.failure),
      };
    case 'CollectionAbsent':
    case 'EventRead':
    case 'Closed':
    case 'CheckDue':
    case 'Reopened':
    case 'Slept':
      return { state };
  }
}

function failed(
  state: EmptyState | ListingState | WatchingState,
  { livedMs, random }: Ending,
  failure?: ApiFailure,
): BackingOffState {
  const hasWorked = livedMs >= STEADY_MS;
  if (failure !== undefined && isUnanswered(failure) && !hasWorked) {
    return { kind: 'BackingOff', ms: spread(UNANSWERED_PAUSE_MS, random), then: state };
  }
  const failures = hasWorked ? 1 : state.failures + 1;
  const asked = failure !== undefined && 'retryAfterMs' in failure ? failure.retryAfterMs : 0;
  const canResume =
    failures % FAILURES_BEFORE_RELIST !== 0 &&
    !(failure !== undefined && SPOILING_KINDS.has(failure.kind));
  return {
    kind: 'BackingOff',
    ms: Math.max(asked, backoffMs(failures, random)),
    then: canResume ? { ...state, failures } : { kind: 'Empty', failures },
  };
}

function isUnanswered(failure: ApiFailure): boolean {
  return (failure.kind === 'Network' || failure.kind === 'Timeout') && !('status' in failure);
}

/** After these the same version or token would fail again, or the collection may have changed. */
const SPOILING_KINDS: ReadonlySet<ApiFailure['kind']> = new Set([
  'Gone',
  'Malformed',
  'NotFound',
  'BadRequest',
  'Invalid',
]);

/** Doubles up to the longest wait; between half of it and all of it by chance. */
export function backoffMs(failures: number, random: number): number {
  return spread(Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS), random);
}

function spread(ms: number, random: number): number {
  return ms * (0.5 + random / 2);
}

function changeOf({ type, object }: WatchEvent): { readonly change?: WatchChange } {
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { change: { kind: 'Upserted', object } };
    case 'DELETED':
      return { change: { kind: 'Removed', object } };
    case 'BOOKMARK':
      return {};
  }
}

function versionOf({ metadata }: JsonObject): string | undefined {
  const version = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  return typeof version === 'string' && version !== '' ? version : undefined;
}
