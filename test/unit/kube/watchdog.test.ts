import { describe, expect, it } from '@jest/globals';
import { Watchdog } from '../../../src/kube';
import { ManualClock } from '../../support/manualClock';

const TEN_MINUTES_MS = 600_000;

function never(): Promise<void> {
  return new Promise(() => undefined);
}

describe('a watchdog', () => {
  it('has no problem while nothing is done', async () => {
    const clock = new ManualClock();
    const watchdog = new Watchdog('work', clock);
    await clock.advance(10 * TEN_MINUTES_MS);
    expect(watchdog.check.problem()).toBeUndefined();
  });

  it('gives the result of the work, or its error, and has forgotten it then', async () => {
    const clock = new ManualClock();
    const watchdog = new Watchdog('work', clock);
    await expect(watchdog.during(() => Promise.resolve('done'))).resolves.toBe('done');
    const error = new Error('refused');
    await expect(watchdog.during(() => Promise.reject(error))).rejects.toBe(error);
    await clock.advance(10 * TEN_MINUTES_MS);
    expect(watchdog.check.problem()).toBeUndefined();
  });

  it('tells of work that does not end, also while other work does', async () => {
    const clock = new ManualClock();
    const watchdog = new Watchdog('work', clock);
    void watchdog.during(never);
    await clock.advance(TEN_MINUTES_MS);
    await watchdog.during(() => Promise.resolve());
    expect(watchdog.check.problem()).toBeUndefined();
    await clock.advance(1_000);
    expect(watchdog.check).toMatchObject({ name: 'work' });
    expect(watchdog.check.problem()).toBe('in the same work for 601 s');
  });
});
