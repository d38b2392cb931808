/** Takes part in the election of a leader by a Lease, and tells its owner when to act. */
import type { HealthCheck, Logger } from '../observability';
import { ApiError } from './apiFailure';
import { sleep } from './clock';
import type { Clock } from './clock';
import type { JsonObject } from './jsonObject';
import type { KubeClient } from './kubeClient';
import { claimLease, observeLease, releasedSpec } from './leaseElection';
import type { LeaseSettings, ObservedLease } from './leaseElection';
import { LEASES } from './resourceRef';
import type { ObjectRef } from './resourceRef';
import { ResourceWatch } from './resourceWatch';
import { Watchdog } from './watchdog';

export interface LeaseElectorOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Different for each process, also after a restart. */
  readonly identity: string;
  readonly settings: LeaseSettings;
  /** In [0, 1). */
  readonly random: () => number;
  /** This process leads now; `isLeading` tells whether it still does. */
  readonly onElected: () => void;
  /** It does not lead any more; resolves when nothing is being done. */
  readonly onDeposed: () => Promise<void>;
  /** The Lease had changed, and no event has told: other streams of this process may be silent, too. */
  readonly onSilence: () => void;
}

/** client-go waits 1 to 2.2 retry periods, so that candidates do not all come at once. */
const JITTER = 1.2;

/**
 * Guarantees: `isLeading` is true only while no other candidate that follows the rules can take the
 * lease, as far as one machine's clock can tell; a process that was paused finds it false when it
 * wakes up. The lease is given back only after `onDeposed` has resolved.
 * Caveats: a request that is on its way when leadership ends cannot be called back, and the API has
 * no fencing: what a leader writes must be harmless when two do it.
 */
export class LeaseElector {
  readonly #options: LeaseElectorOptions;
  readonly #ref: ObjectRef;
  readonly #watch: ResourceWatch;
  readonly #watchdog: Watchdog;
  readonly #stopping = new AbortController();
  #observed: ObservedLease | undefined;
  /** Monotonic milliseconds at which the last successful renewal was begun. */
  #renewedAt = -Infinity;
  #news = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: LeaseElectorOptions) {
    const { client, clock, logger, lease } = options;
    this.#options = options;
    this.#ref = { ...LEASES, ...lease };
    this.#watchdog = new Watchdog('end of leadership', clock);
    this.#watch = new ResourceWatch({
      client,
      clock,
      logger,
      resource: LEASES,
      selection: { namespace: lease.namespace, fieldSelector: `metadata.name=${lease.name}` },
      onEvent: ({ type, object }) => {
        this.#hear(type === 'DELETED' ? undefined : object);
      },
    });
  }

  isLeading(): boolean {
    const { clock, settings } = this.#options;
    return clock.monotonic() - this.#renewedAt < settings.renewDeadlineMs;
  }

  /** All else that it waits for has a timer. */
  get liveChecks(): readonly HealthCheck[] {
    return [this.#watchdog.check, this.#watch.liveCheck];
  }

  start(): void {
    this.#watch.start();
    this.#running ??= this.#run();
  }

  /** Ends leadership in order: stops the work, then gives the lease back for the next one. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#news.abort();
    await this.#running;
    await this.#watch.stop();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped()) {
      await this.#campaign();
      if (!this.#isStopped()) await this.#lead();
      // The claim that was on its way when the stop came may have won it, too.
      if (this.#isStopped()) await this.#release();
      this.#renewedAt = -Infinity;
    }
  }

  async #lead(): Promise<void> {
    const { logger, identity, onElected, onDeposed } = this.#options;
    logger.info({ identity }, 'leading');
    onElected();
    await this.#reign();
    const hadTime = this.isLeading();
    await this.#watchdog.during(onDeposed);
    logger.info({ identity, hadTime }, 'leading no more');
  }

  /** Tries until this process leads, or is stopped. */
  async #campaign(): Promise<void> {
    const { clock, settings, identity } = this.#options;
    while (!this.#isStopped() && !this.isLeading()) {
      const claim = claimLease(this.#observed, identity, settings, clock.monotonic(), clock.now());
      if (claim.kind === 'Wait') {
        await this.#sleepUntilNews(claim.until - clock.monotonic());
      } else if (!(await this.#write(claim.spec))) {
        await this.#sleepUntilNews(this.#jitteredRetryMs());
      }
    }
  }

  /** Renews until that has failed for too long, or this process is stopped. */
  async #reign(): Promise<void> {
    const { clock, settings, identity } = this.#options;
    while (!this.#isStopped() && this.isLeading()) {
      const untilDeadline = this.#renewedAt + settings.renewDeadlineMs - clock.monotonic();
      const pause = Math.min(settings.retryPeriodMs, untilDeadline);
      await sleep(clock, pause, this.#stopping.signal);
      if (this.#isStopped() || !this.isLeading()) return;
      const observed = this.#observed;
      // Somebody else has it: the rules were broken, or this process slept.
      if (observed !== undefined && observed.record.holder !== identity) {
        this.#renewedAt = -Infinity;
        return;
      }
      const claim = claimLease(observed, identity, settings, clock.monotonic(), clock.now());
      if (claim.kind === 'Write') await this.#write(claim.spec);
    }
  }

  /** True if the write was accepted; from the time it was begun this process leads. */
  async #write(spec: JsonObject): Promise<boolean> {
    const { client, clock, logger, settings } = this.#options;
    const begun = clock.monotonic();
    const timeoutMs = this.isLeading()
      ? Math.max(1, this.#renewedAt + settings.renewDeadlineMs - begun)
      : settings.renewDeadlineMs;
    try {
      const lease = await this.#put(client, spec, timeoutMs);
      this.#observed = observeLease(this.#observed, lease, clock.monotonic());
      this.#renewedAt = begun;
      return true;
    } catch (error) {
      const kind = error instanceof ApiError ? error.failure.kind : 'Unknown';
      logger.debug({ error, kind }, 'the lease was not written');
      if (kind === 'Cancelled') return false;
      if (kind === 'Conflict') this.#suspectSilence();
      await this.#readAgain(timeoutMs);
      return false;
    }
  }

  /**
   * The version is the precondition (409 where the Lease has changed since), and whatever others
   * keep on the object stays: labels, annotations, fields of `spec` that an election does not use.
   */
  #put(client: KubeClient, spec: JsonObject, timeoutMs: number): Promise<JsonObject> {
    const { namespace, name } = this.#options.lease;
    if (this.#observed !== undefined) {
      const { resourceVersion } = this.#observed;
      const body = { metadata: { resourceVersion }, spec };
      return client.patch(this.#ref, { type: 'merge', body }, { timeoutMs });
    }
    const metadata = { namespace, name };
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    return client.create({ ...LEASES, namespace }, body, { timeoutMs });
  }

  /**
   * Two that claim at the same moment get here too, and open a few streams for nothing; a standby
   * whose streams have gone silent would else find its caches old when it takes over.
   */
  #suspectSilence(): void {
    this.#watch.reopen();
    this.#options.onSilence();
  }

  /** After a conflict or a lost answer the lease may be anything, our own included. */
  async #readAgain(timeoutMs: number): Promise<void> {
    const { client, clock } = this.#options;
    try {
      const lease = await client.get(this.#ref, { timeoutMs, signal: this.#stopping.signal });
      this.#observed = observeLease(this.#observed, lease, clock.monotonic());
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'NotFound')
        this.#observed = undefined;
    }
  }

  /** Only a process that still leads may give the lease back; anybody else's is left alone. */
  async #release(): Promise<void> {
    const { client, clock, logger, identity, settings } = this.#options;
    const observed = this.#observed;
    if (observed?.record.holder !== identity) return;
    try {
      const spec = releasedSpec(observed.record, clock.now());
      await this.#put(client, spec, settings.renewDeadlineMs);
    } catch (error) {
      logger.warn({ error }, 'the lease was not released; the next leader waits for it to expire');
    }
  }

  /** A leader hears of others by a conflict; an old event must not make it think that it is none. */
  #hear(lease: JsonObject | undefined): void {
    if (this.isLeading()) return;
    const now = this.#options.clock.monotonic();
    const before = this.#observed;
    this.#observed = lease === undefined ? undefined : observeLease(before, lease, now);
    if (this.#observed === before) return;
    this.#news.abort();
    this.#news = new AbortController();
  }

  /** A release is news, and so is a renewal: the time until expiry starts again. */
  #sleepUntilNews(ms: number): Promise<void> {
    const { clock } = this.#options;
    return sleep(clock, ms, AbortSignal.any([this.#news.signal, this.#stopping.signal]));
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #jitteredRetryMs(): number {
    const { settings, random } = this.#options;
    return settings.retryPeriodMs * (1 + JITTER * random());
  }
}
