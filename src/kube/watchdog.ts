/** Notices work that began and does not end. */
import type { HealthCheck } from '../observability';
import type { Clock } from './clock';

/**
 * No work takes so long: each API call ends after 30 s at most, and what makes many of them one after
 * the other (a paged list of a large namespace) needs far less for each.
 */
const STUCK_AFTER_MS = 600_000;

/** For the liveness probe: a process that waits for ever for an answer of its own is started anew. */
export class Watchdog {
  readonly #name: string;
  readonly #clock: Clock;
  /** When each piece of work that runs began, the oldest first; monotonic milliseconds. */
  readonly #running = new Map<symbol, number>();

  constructor(name: string, clock: Clock) {
    this.#name = name;
    this.#clock = clock;
  }

  /** Settles as the work does. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    const key = Symbol(this.#name);
    this.#running.set(key, this.#clock.monotonic());
    try {
      return await work();
    } finally {
      this.#running.delete(key);
    }
  }

  get check(): HealthCheck {
    return { name: this.#name, problem: () => this.#problem() };
  }

  #problem(): string | undefined {
    const [oldest] = this.#running.values();
    const ms = oldest === undefined ? 0 : this.#clock.monotonic() - oldest;
    return ms <= STUCK_AFTER_MS ? undefined : `in the same work for ${Math.round(ms / 1_000)} s`;
  }
}
