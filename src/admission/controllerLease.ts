/** Whether a controller is there that would take boosts back, as far as its Lease tells. */
import { LEASES, ResourceWatch, observeLease } from '../kube';
import type { Clock, KubeClient, ObservedLease } from '../kube';
import type { HealthCheck, Logger } from '../observability';

export interface ControllerLeaseOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** How long the Lease may have been expired or absent, in milliseconds. */
  readonly graceMs: number;
}

/**
 * Follows the one Lease by local observation: what counts is for how long it has been seen
 * unchanged on the monotonic clock, never the times that are written in it.
 *
 * Caveat: a process that has just started sees an old Lease as a new one, and grants it the whole
 * time again.
 */
export class ControllerLease {
  readonly #options: ControllerLeaseOptions;
  readonly #watch: ResourceWatch;
  #observed: ObservedLease | undefined;
  /** Monotonic milliseconds since when there is no Lease; meaningless while there is one. */
  #absentSince: number;

  constructor(options: ControllerLeaseOptions) {
    const { client, clock, logger, lease } = options;
    this.#options = options;
    this.#absentSince = clock.monotonic();
    this.#watch = new ResourceWatch({
      client,
      clock,
      logger,
      resource: LEASES,
      selection: { namespace: lease.namespace, fieldSelector: `metadata.name=${lease.name}` },
      onEvent: ({ type, object }) => {
        const now = clock.monotonic();
        this.#absentSince = now;
        this.#observed = type === 'DELETED' ? undefined : observeLease(this.#observed, object, now);
      },
    });
  }

  /**
   * `Missing` only where the Lease can be read and nobody has held it for longer than the grace:
   * an API server that is away, or a right that was taken away, says nothing about the controller.
   */
  get controller(): 'Acting' | 'Missing' {
    const { clock, graceMs } = this.#options;
    const now = clock.monotonic();
    const observed = this.#observed;
    const freeSince =
      observed === undefined ? this.#absentSince : observed.since + observed.record.durationMs;
    // What the Lease was like while nobody could read it is not known.
    const freeMs = Math.min(now - freeSince, this.#watch.stats().inTouchMs);
    return freeMs > graceMs ? 'Missing' : 'Acting';
  }

  get liveCheck(): HealthCheck {
    return this.#watch.liveCheck;
  }

  start(): void {
    this.#watch.start();
  }

  stop(): Promise<void> {
    return this.#watch.stop();
  }
}
