import { describe, expect, it } from '@jest/globals';
import { Sweep } from '../../../src/controller/sweep';
import { ManualClock } from '../../support/manualClock';
import { RecordingLogger } from '../../support/recordingLogger';

describe('the safety net', () => {
  it('goes on after a round that throws, and says so', async () => {
    const clock = new ManualClock();
    const logger = new RecordingLogger();
    let rounds = 0;
    const round = (): void => {
      rounds += 1;
      throw new Error('a pod like none before');
    };
    const sweep = new Sweep({ clock, logger, intervalMs: 1_000, round });
    sweep.start('AtOnce');
    await clock.advance(3_500);
    expect(rounds).toBe(4);
    expect(logger.lines.map(({ level }) => level)).toEqual(['error', 'error', 'error', 'error']);

    sweep.stop();
    await clock.advance(10_000);
    expect(rounds).toBe(4);
    expect(clock.timers).toBe(0);
  });
});
