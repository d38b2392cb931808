/** A clock that stands still until a test moves it. */
import type { Clock, Timer } from '../../src/kube';

interface Pending {
  readonly dueAt: number;
  readonly order: number;
  readonly fn: () => void;
}

/** Starts at a named date, so that a test's times read as times. */
const START = Date.parse('2026-01-01T00:00:00Z');

export class ManualClock implements Clock {
  #elapsed = 0;
  #skew = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();

  now(): number {
    return START + this.#skew + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  setTimer(ms: number, fn: () => void): Timer {
    this.#order += 1;
    const timer: Pending = { dueAt: this.#elapsed + Math.max(ms, 0), order: this.#order, fn };
    this.#pending.add(timer);
    return { cancel: () => void this.#pending.delete(timer) };
  }

  /** Timers not fired and not canceled. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Runs the timers that fall due in order, each with the time it was set for, then what they woke. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settled();
    for (let next = this.#firstDueBy(end); next !== undefined; next = this.#firstDueBy(end)) {
      this.#pending.delete(next);
      this.#elapsed = Math.max(this.#elapsed, next.dueAt);
      next.fn();
      await settled();
    }
    this.#elapsed = end;
  }

  /** The wall clock jumps, as by a time server; the monotonic clock does not. */
  jumpWallClock(ms: number): void {
    this.#skew += ms;
  }

  #firstDueBy(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const timer of this.#pending) {
      if (timer.dueAt <= end && (first === undefined || isBefore(timer, first))) {
        first = timer;
      }
    }
    return first;
  }
}

function isBefore(a: Pending, b: Pending): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}

/** After setImmediate every microtask that was ready, and those that they queued, have run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
