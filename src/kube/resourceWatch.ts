/** Drives one watch: does what its state asks for, keeps the cache, tells the handler. */
import type { HealthCheck, Logger } from '../observability';
import { ApiError } from './apiFailure';
import type { ApiFailure } from './apiFailure';
import { sleep } from './clock';
import type { Clock } from './clock';
import type { JsonObject, ListPage } from './jsonObject';
import type { KubeClient, ListOptions, Selection } from './kubeClient';
import { ResourceStore } from './resourceCache';
import type { ResourceCache, ResourceChange } from './resourceCache';
import { describeRef } from './resourceRef';
import type { ResourceRef } from './resourceRef';
import { INITIAL_WATCH_STATE, stepWatch } from './watch';
import type { CheckingState, WatchChange, WatchInput, WatchState, WatchingState } from './watch';

export type WatchLogger = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

export interface ResourceWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: WatchLogger;
  readonly resource: ResourceRef;
  readonly selection?: Selection;
  /** Called in order, one at a time; the next event waits for it. What it throws is logged. */
  readonly onEvent: (change: ResourceChange) => void | Promise<void>;
  /** Makes objects smaller before they are kept; metadata's uid, name and version must stay. */
  readonly transform?: (object: JsonObject) => JsonObject;
  /** Milliseconds between comparisons of the cache with the server; 10 minutes unless given. */
  readonly checkEveryMs?: number;
  /** In [0, 1); Math.random unless given. */
  readonly random?: () => number;
}

export interface WatchStats {
  /** Objects in the cache. */
  readonly objects: number;
  /** Milliseconds since the server last sent anything; grows while the watch is out of touch. */
  readonly ageMs: number;
  /**
   * For how long the cache can be believed to be what the server has, in milliseconds; 0 before the
   * first list, after a failure, and while the stream is silent. Short gaps do not count.
   */
  readonly inTouchMs: number;
  /** Complete lists after the first. */
  readonly relists: number;
  /** Changes that only a comparison with the server brought: events that were lost. */
  readonly drift: number;
  readonly failures: number;
}

type StreamEnd = 'ByServer' | 'Idle' | 'CheckDue' | 'Reopened' | 'Stopped';

/** As client-go: https://github.com/kubernetes/client-go/blob/v0.36.3/tools/pager/pager.go */
const PAGE_SIZE = 500;
/** A page of 500 large pods from a server that has to read etcd. */
const LIST_TIMEOUT_MS = 30_000;
/** The server ends a stream after 240 to 300 s, so that watches move when servers are replaced. */
const SHORTEST_WATCH_SECONDS = 240;
const WATCH_SECONDS_SPREAD = 61;
/** Bookmarks come about each minute; after two missed ones the stream counts as dead. */
const IDLE_MS = 150_000;
const CHECK_EVERY_MS = 600_000;
/** Twice the longest stream: a list, a stream and a pause each end by themselves long before. */
const STALLED_AFTER_MS = 2 * (SHORTEST_WATCH_SECONDS + WATCH_SECONDS_SPREAD) * 1_000;

/**
 * Guarantees: runs until stopped whatever the server or the handler does; each object that exists
 * is announced once and each that is gone too, also when its event was missed; the cache changes
 * before the handler hears of it.
 * Caveats: on `DELETED` the object may only have left the selection. A handler that never settles
 * holds the watch up; `ageMs` shows it.
 */
export class ResourceWatch {
  /** Settles when the first complete list has been handled, or the watch was stopped before. */
  readonly synced: Promise<void>;
  /** What it watches, for people: `pods`, `leases.coordination.k8s.io ns/name`. */
  readonly name: string;
  readonly #options: ResourceWatchOptions;
  readonly #store = new ResourceStore();
  readonly #stopping = new AbortController();
  readonly #random: () => number;
  #resolveSynced: () => void = () => undefined;
  #isSynced = false;
  #loop: Promise<void> | undefined;
  /** Ends the stream that is open, if one is. */
  #endStream: ((reason: StreamEnd) => void) | undefined;
  #lastActivity: number;
  #lastAttempt: number;
  #hasFailed = false;
  #inTouchSince: number;
  #checkDueAt = Infinity;
  #relists = 0;
  #drift = 0;
  #failures = 0;

  constructor(options: ResourceWatchOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#lastActivity = options.clock.monotonic();
    this.#lastAttempt = this.#lastActivity;
    this.#inTouchSince = this.#lastActivity;
    this.name = describeRef({ ...options.resource, ...options.selection });
    this.synced = new Promise((resolve) => {
      this.#resolveSynced = resolve;
    });
  }

  get cache(): ResourceCache {
    return this.#store;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  stats(): WatchStats {
    const now = this.#options.clock.monotonic();
    const ageMs = now - this.#lastActivity;
    const isInTouch = this.#isSynced && !this.#hasFailed && ageMs <= IDLE_MS;
    return {
      objects: this.#store.size,
      ageMs,
      inTouchMs: isInTouch ? now - this.#inTouchSince : 0,
      relists: this.#relists,
      drift: this.#drift,
      failures: this.#failures,
    };
  }

  /** No problem while the loop goes on, whether its attempts succeed or not: an outage ends no process. */
  get liveCheck(): HealthCheck {
    return { name: `watch ${this.name}`, problem: () => this.#stall() };
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /**
   * Opens the stream anew from the version that it has reached: what a silent connection has
   * swallowed comes at once, and not only when the silence is noticed. Nothing where none is open.
   */
  reopen(): void {
    this.#endStream?.('Reopened');
  }

  /** Ends the stream; settles when the handler has returned and nothing runs any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    this.#resolveSynced();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let state: WatchState = INITIAL_WATCH_STATE;
    while (!signal.aborted) {
      this.#lastAttempt = this.#options.clock.monotonic();
      try {
        state = await this.#advance(state);
      } catch (error) {
        state = await this.#take(state, this.#failed(error, 0));
      }
    }
  }

  #stall(): string | undefined {
    const ms = this.#options.clock.monotonic() - this.#lastAttempt;
    if (ms <= STALLED_AFTER_MS) return undefined;
    return `no attempt to read ${this.name} for ${Math.round(ms / 1_000)} s`;
  }

  #advance(state: WatchState): Promise<WatchState> {
    switch (state.kind) {
      case 'Empty':
        return this.#listFirst(state);
      case 'Listing':
        return this.#list(state, { continue: state.continueToken });
      case 'Checking':
        return this.#list(state, exactly(state));
      case 'Watching':
        return this.#follow(state);
      case 'BackingOff':
        return this.#backOff(state.ms, state);
    }
  }

  async #backOff(ms: number, state: WatchState): Promise<WatchState> {
    await sleep(this.#options.clock, ms, this.#stopping.signal);
    return this.#take(state, { kind: 'Slept' });
  }

  async #listFirst(state: WatchState): Promise<WatchState> {
    const { client, resource } = this.#options;
    const { signal } = this.#stopping;
    try {
      return await this.#list(state, {});
    } catch (error) {
      const missing = error instanceof ApiError && error.failure.kind === 'NotFound';
      if (!missing || (await client.serves(resource, { signal }))) {
        throw error;
      }
      this.#touch();
      return this.#take(state, { kind: 'CollectionAbsent' });
    }
  }

  async #list(
    state: WatchState,
    from: Pick<ListOptions, 'continue' | 'exactResourceVersion'>,
  ): Promise<WatchState> {
    const { client, resource, selection } = this.#options;
    const page: ListPage = await client.list(resource, {
      ...selection,
      ...from,
      limit: PAGE_SIZE,
      timeoutMs: LIST_TIMEOUT_MS,
      signal: this.#stopping.signal,
    });
    this.#touch();
    const items = page.items.map((item) => this.#transformed(item));
    return this.#take(state, { kind: 'PageListed', page: { ...page, items } });
  }

  async #follow(watching: WatchingState): Promise<WatchState> {
    const { client, clock, resource, selection } = this.#options;
    const stop = this.#stopping.signal;
    const stream = new AbortController();
    let ended: StreamEnd = 'ByServer';
    const end = (reason: StreamEnd) => (): void => {
      ended = reason;
      stream.abort();
    };
    this.#endStream = (reason) => {
      end(reason)();
    };
    const onStop = end('Stopped');
    stop.addEventListener('abort', onStop, { once: true });
    const openedAt = clock.monotonic();
    const checkTimer = clock.setTimer(this.#checkDueAt - openedAt, () => {
      // Already now: after a check that fails the stream is to live until the next one is due.
      this.#planCheck();
      end('CheckDue')();
    });
    let idleTimer = clock.setTimer(IDLE_MS, end('Idle'));
    let state: WatchState = watching;
    let input: WatchInput | undefined;
    try {
      const events = client.watch(resource, {
        ...selection,
        resourceVersion: watching.resourceVersion,
        timeoutSeconds: SHORTEST_WATCH_SECONDS + Math.floor(this.#random() * WATCH_SECONDS_SPREAD),
        signal: stream.signal,
      });
      for await (const event of events) {
        idleTimer.cancel();
        this.#touch();
        const object = this.#transformed(event.object);
        state = await this.#take(state, { kind: 'EventRead', event: { ...event, object } });
        if (stream.signal.aborted) {
          break;
        }
        idleTimer = clock.setTimer(IDLE_MS, end('Idle'));
      }
    } catch (error) {
      input = this.#failed(error, clock.monotonic() - openedAt);
    } finally {
      this.#endStream = undefined;
      idleTimer.cancel();
      checkTimer.cancel();
      stop.removeEventListener('abort', onStop);
      stream.abort();
    }
    return this.#take(state, this.#endInput(ended, input, clock.monotonic() - openedAt));
  }

  #endInput(ended: StreamEnd, failure: WatchInput | undefined, livedMs: number): WatchInput {
    const closed: WatchInput = { kind: 'Closed', livedMs, random: this.#random() };
    switch (ended) {
      case 'ByServer':
        return failure ?? closed;
      case 'CheckDue':
      case 'Reopened':
        return { kind: ended };
      case 'Idle':
      case 'Stopped':
        return closed;
    }
  }

  async #take(state: WatchState, input: WatchInput): Promise<WatchState> {
    const { state: next, change } = stepWatch(state, input);
    if (input.kind === 'Failed' && !this.#stopping.signal.aborted) {
      this.#report(input.failure, next);
    }
    if (change !== undefined) {
      await this.#deliver(change);
    }
    return next;
  }

  async #deliver(change: WatchChange): Promise<void> {
    const { logger } = this.#options;
    const announcements = this.#store.apply(change);
    if (change.kind === 'Replaced') {
      this.#noteComparison(change.cause, announcements.length);
    }
    for (const announcement of announcements) {
      if (this.#stopping.signal.aborted) {
        return;
      }
      try {
        await this.#options.onEvent(announcement);
      } catch (error) {
        logger.error({ error, watch: this.name, event: announcement.type }, 'event handler threw');
      }
    }
    if (change.kind === 'Replaced' && !this.#isSynced) {
      this.#isSynced = true;
      this.#resolveSynced();
    }
  }

  #planCheck(): void {
    const { clock, checkEveryMs = CHECK_EVERY_MS } = this.#options;
    this.#checkDueAt = clock.monotonic() + checkEveryMs;
  }

  #noteComparison(cause: 'Listed' | 'Absent' | 'Checked', differences: number): void {
    const { logger } = this.#options;
    const watch = this.name;
    this.#planCheck();
    switch (cause) {
      case 'Listed':
        this.#relists += this.#isSynced ? 1 : 0;
        logger.info({ watch, objects: this.#store.size, differences }, 'watch listed');
        break;
      case 'Absent':
        if (!this.#isSynced || differences > 0) {
          logger.warn({ watch, differences }, 'the server does not serve this resource (yet)');
        }
        break;
      case 'Checked':
        this.#drift += differences;
        if (differences > 0) {
          logger.warn({ watch, differences }, 'watch had lost events');
        }
        break;
    }
  }

  #failed(error: unknown, livedMs: number): WatchInput {
    const failure: ApiFailure =
      error instanceof ApiError
        ? error.failure
        : {
            kind: 'Malformed',
            request: `WATCH ${this.name}`,
            message: error instanceof Error ? error.message : String(error),
            source: error,
          };
    return { kind: 'Failed', failure, livedMs, random: this.#random() };
  }

  #report(failure: ApiFailure, next: WatchState): void {
    this.#failures += 1;
    this.#hasFailed = true;
    const { kind, message, request } = failure;
    const retryInMs = next.kind === 'BackingOff' ? Math.round(next.ms) : 0;
    this.#options.logger.warn(
      { watch: this.name, failure: kind, reason: message, request, retryInMs },
      'watch failed, trying again',
    );
  }

  #transformed(object: JsonObject): JsonObject {
    const { transform, logger } = this.#options;
    if (transform === undefined) {
      return object;
    }
    try {
      return transform(object);
    } catch (error) {
      logger.error({ error, watch: this.name }, 'transform threw, object kept as it came');
      return object;
    }
  }

  #touch(): void {
    const now = this.#options.clock.monotonic();
    if (!this.#isSynced || now - this.#lastActivity > IDLE_MS) this.#inTouchSince = now;
    this.#hasFailed = false;
    this.#lastActivity = now;
  }
}

function exactly(state: CheckingState): Pick<ListOptions, 'continue' | 'exactResourceVersion'> {
  return state.continueToken === undefined
    ? { exactResourceVersion: state.resourceVersion }
    : { continue: state.continueToken };
}
