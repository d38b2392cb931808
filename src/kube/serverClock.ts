/** The API server's wall clock, as far as its answers tell it: all timestamps of objects are from there. */
import type { Clock, Timer } from './clock';

/**
 * The Date header has whole seconds and an answer takes a while: a difference up to this is none.
 * Above it, a boost of 20 s would visibly end too early or too late.
 */
const TOLERANCE_MS = 2_000;

/** A header's second has gone by half on average. */
const HALF_A_SECOND_MS = 500;

/**
 * Caveats: with several API servers whose clocks differ, the last answer counts; an answer that was
 * on its way for seconds shifts the clock by half of that until the next one.
 */
export class ServerClock implements Clock {
  readonly #base: Clock;
  #offsetMs = 0;

  constructor(base: Clock) {
    this.#base = base;
  }

  now(): number {
    return this.#base.now() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  setTimer(ms: number, fn: () => void): Timer {
    return this.#base.setTimer(ms, fn);
  }

  /** Takes the Date header of an answer that was asked for `tookMs` milliseconds ago. */
  observe(date: string, tookMs: number): void {
    const served = Date.parse(date);
    if (Number.isNaN(served)) return;
    const offsetMs = served + HALF_A_SECOND_MS + tookMs / 2 - this.#base.now();
    this.#offsetMs = Math.abs(offsetMs) > TOLERANCE_MS ? Math.round(offsetMs) : 0;
  }
}
