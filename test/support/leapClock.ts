/** The machine's clock, of which a test can skip the waiting. */
import { systemClock } from '../../src/kube';
import type { Clock, Timer } from '../../src/kube';

export interface LeapClock extends Clock {
  /** Timers and the monotonic clock go on by this many milliseconds at once; the date does not. */
  leap(ms: number): void;
}

interface Pending {
  readonly dueAt: number;
  readonly fn: () => void;
  timer?: Timer;
}

export function leapClock(): LeapClock {
  const machine = systemClock();
  const pending = new Set<Pending>();
  let leapt = 0;
  const monotonic = (): number => machine.monotonic() + leapt;
  const arm = (one: Pending): void => {
    one.timer?.cancel();
    one.timer = machine.setTimer(one.dueAt - monotonic(), () => {
      pending.delete(one);
      one.fn();
    });
  };
  return {
    now: () => machine.now(),
    monotonic,
    setTimer: (ms, fn) => {
      const one: Pending = { dueAt: monotonic() + ms, fn };
      pending.add(one);
      arm(one);
      return {
        cancel: () => {
          one.timer?.cancel();
          pending.delete(one);
        },
      };
    },
    leap: (ms) => {
      leapt += ms;
      for (const one of pending) arm(one);
    },
  };
}
