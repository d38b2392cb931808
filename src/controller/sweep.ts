/** The safety net: looks at everything now and then, and counts what should not have been left to it. */
import { sleep } from '../kube';
import type { Clock } from '../kube';

export interface SweepOptions {
  readonly clock: Clock;
  /** Milliseconds between the end of one round and the next. */
  readonly intervalMs: number;
  /** One round; must not throw. The signal says that nobody wants the rest of it. */
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
    const { clock, intervalMs, round } = this.#options;
    const { signal } = this.#stopping;
    if (first === 'AtOnce') await round(signal);
    for (;;) {
      await sleep(clock, intervalMs, signal);
      if (signal.aborted) return;
      await round(signal);
    }
  }
}
