/** The clock that follows the API server's. */
import { describe, expect, it } from '@jest/globals';
import { ServerClock } from '../../../src/kube';
import { ManualClock } from '../../support/manualClock';

describe('the server clock', () => {
  const HALF = 500;
  const clockAt = (now: number) => new ServerClock({ ...manual(), now: () => now });
  const manual = () => {
    const clock = new ManualClock();
    return {
      monotonic: () => clock.monotonic(),
      setTimer: (ms: number, fn: () => void) => clock.setTimer(ms, fn),
    };
  };
  const date = (ms: number) => new Date(ms).toUTCString();

  it.each([-2_000, -500, 0, 999, 1_500])('takes %i ms of difference for none', (difference) => {
    const clock = clockAt(1_000_000);
    clock.observe(date(1_000_000 + difference), 0);
    expect(clock.now()).toBe(1_000_000);
  });

  it.each([-30_000, 30_000])('follows a server that is %i ms away', (difference) => {
    const clock = clockAt(1_000_000);
    clock.observe(date(1_000_000 + difference), 0);
    expect(clock.now()).toBe(1_000_000 + difference + HALF);
  });

  it('is back at its own time when the difference is gone', () => {
    const clock = clockAt(1_000_000);
    clock.observe(date(1_030_000), 0);
    clock.observe(date(1_000_000), 0);
    expect(clock.now()).toBe(1_000_000);
  });

  it('adds half of the time that the answer took', () => {
    const clock = clockAt(1_000_000);
    clock.observe(date(1_030_000), 4_000);
    expect(clock.now()).toBe(1_030_000 + HALF + 2_000);
  });

  it('ignores a header that is no date', () => {
    const clock = clockAt(1_000_000);
    clock.observe('yesterday', 0);
    expect(clock.now()).toBe(1_000_000);
  });
});
