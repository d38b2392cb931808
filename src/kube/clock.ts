/** The one seam to time: wall clock, monotonic clock and cancelable timers. */
import { performance } from 'node:perf_hooks';

export interface Timer {
  /** The function will not run any more; harmless after it ran. */
  cancel(): void;
}

export interface Clock {
  /** Wall clock, epoch milliseconds: for times that people or other machines read. */
  now(): number;
  /** Milliseconds since an arbitrary start; never steps back: for all deadlines and ages. */
  monotonic(): number;
  /** Runs `fn` once after `ms` milliseconds (at the next turn if zero or less). */
  setTimer(ms: number, fn: () => void): Timer;
}

/** Node fires a longer timeout at once: https://nodejs.org/docs/latest-v20.x/api/timers.html */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimer: (ms, fn) => {
      let handle: NodeJS.Timeout;
      const arm = (rest: number): void => {
        const part = Math.min(Math.max(rest, 0), LONGEST_TIMEOUT_MS);
        handle = setTimeout(() => {
          if (rest > part) {
            arm(rest - part);
          } else {
            fn();
          }
        }, part);
      };
      arm(ms);
      return {
        cancel: () => {
          clearTimeout(handle);
        },
      };
    },
  };
}

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted; never rejects. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(ms, wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
