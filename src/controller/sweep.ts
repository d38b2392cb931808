/** The safety net: looks at everything now and then, and counts what should not have been left to it. */
import type { Clock, Timer } from '../kube';

export interface SweepOptions {
  readonly clock: Clock;
  /** Milliseconds between the end of one round and the next. */
  readonly intervalMs: number;
  readonly round: () => void;
}

export class Sweep {
  readonly #options: SweepOptions;
  #timer: Timer | undefined;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, intervalMs, round } = this.#options;
    this.#timer = clock.setTimer(intervalMs, () => {
      round();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }
}
