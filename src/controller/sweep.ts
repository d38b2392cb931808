/** The safety net: looks at everything now and then, and counts what should not have been left to it. */
import { sleep } from '../kube';
import type { Clock } from '../kube';
import type { Logger } from '../observability';

export interface SweepOptions {
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'error'>;
  /** Milliseconds between the end of one round and the next. */
  readonly intervalMs: number;
  /** One round; what it throws is logged. The signal says that nobody wants the rest of it. */
  readonly round: (signal: AbortSignal) => void | Promise<void>;
}

export class Sweep {
  readonly #options: SweepOptions;
  readonly #stopping = new AbortController();

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  /** @param first when the first round is */
  start(first: 'AtOnce' | 'AfterInterval' = 'AfterInterval'): void {
    void this.#run(first);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #run(first: 'AtOnce' | 'AfterInterval'): Promise<void> {
    const { clock, intervalMs } = this.#options;
    const { signal } = this.#stopping;
    if (first === 'AtOnce') await this.#round(signal);
    for (;;) {
      await sleep(clock, intervalMs, signal);
      if (signal.aborted) return;
      await this.#round(signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { logger, round } = this.#options;
    try {
      await round(signal);
    } catch (error) {
      logger.error({ error }, 'a round of the safety net threw, the next one comes at its time');
    }
  }
}
