import { describe, expect, it } from '@jest/globals';
import { WorkQueue } from '../../../src/controller/workQueue';
import type { WorkQueueOptions, WorkResult } from '../../../src/controller/workQueue';
import { ManualClock } from '../../support/manualClock';

const DONE: WorkResult = { kind: 'Done' };

interface Stage {
  readonly clock: ManualClock;
  readonly queue: WorkQueue;
  /** `key@time` of each start. */
  readonly started: string[];
  readonly errors: string[];
}

function stage(
  worker: (key: string) => WorkResult | Promise<WorkResult> = () => DONE,
  options: Partial<WorkQueueOptions> = {},
): Stage {
  const clock = new ManualClock();
  const started: string[] = [];
  const errors: string[] = [];
  const queue = new WorkQueue({
    clock,
    logger: { error: (_fields, message) => errors.push(message) },
    concurrency: 1,
    random: () => 0,
    worker: async (key) => {
      started.push(`${key}@${clock.monotonic()}`);
      return worker(key);
    },
    ...options,
  });
  return { clock, queue, started, errors };
}

/** A worker whose runs end when the test says so. */
function gate(): { readonly worker: () => Promise<WorkResult>; readonly open: () => void } {
  const waiting: (() => void)[] = [];
  return {
    worker: () =>
      new Promise((resolve) => {
        waiting.push(() => {
          resolve(DONE);
        });
      }),
    open: () => waiting.shift()?.(),
  };
}

describe('a work queue', () => {
  it('runs a key that is added at once', async () => {
    const { queue, clock, started } = stage();
    queue.add('a');
    await clock.advance(0);
    expect(started).toEqual(['a@0']);
    expect(queue.size).toBe(0);
  });

  it('runs a key at its deadline', async () => {
    const { queue, clock, started } = stage();
    queue.addAt('a', 5_000);
    await clock.advance(10_000);
    expect(started).toEqual(['a@5000']);
  });

  it('lets the earliest of several deadlines stand, in whatever order they come', async () => {
    const { queue, clock, started } = stage();
    for (const deadline of [3_000, 9_000, 1_000, 2_000]) queue.addAt('a', deadline);
    await clock.advance(20_000);
    expect(started).toEqual(['a@1000']);
  });

  it('runs a key once for all additions before it starts', async () => {
    const { worker, open } = gate();
    const { queue, clock, started } = stage(worker);
    for (const key of ['a', 'b', 'b', 'b']) queue.add(key);
    open();
    await clock.advance(0);
    open();
    await clock.advance(0);
    expect(started).toEqual(['a@0', 'b@0']);
  });

  it('runs a key again, and only then, that is added while it runs', async () => {
    const { worker, open } = gate();
    const { queue, clock, started } = stage(worker, { concurrency: 4 });
    queue.add('a');
    queue.add('a');
    await clock.advance(100);
    expect(started).toEqual(['a@0']);
    open();
    await clock.advance(0);
    expect(started).toEqual(['a@0', 'a@100']);
  });

  it('runs no more keys at once than it may', async () => {
    const { worker, open } = gate();
    const { queue, clock } = stage(worker, { concurrency: 2 });
    for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
    await clock.advance(0);
    expect(queue.depth()).toEqual({ running: 2, ready: 2, waiting: 0 });
    open();
    await clock.advance(0);
    expect(queue.depth()).toEqual({ running: 2, ready: 1, waiting: 0 });
  });

  it('runs critical keys first, also when they come later', async () => {
    const { worker, open } = gate();
    const { queue, clock, started } = stage(worker);
    for (const key of ['first', 'status', 'revert']) queue.add(key);
    queue.add('other', 'critical');
    queue.add('revert', 'critical');
    for (let run = 0; run < 4; run += 1) {
      open();
      await clock.advance(0);
    }
    expect(started).toEqual(['first@0', 'other@0', 'revert@0', 'status@0']);
  });

  it('runs a key again when the worker asks for it', async () => {
    const results: WorkResult[] = [{ kind: 'RunAgainAfter', ms: 700 }];
    const { queue, clock, started } = stage(() => results.shift() ?? DONE);
    queue.add('a');
    await clock.advance(5_000);
    expect(started).toEqual(['a@0', 'a@700']);
    expect(queue.size).toBe(0);
  });

  it('retries later and later, and from the start again after a success', async () => {
    const retry: WorkResult = { kind: 'Retry' };
    const results = [retry, retry, retry, { kind: 'RunAgainAfter', ms: 1_000 } as const, retry];
    const { queue, clock, started } = stage(() => results.shift() ?? DONE);
    queue.add('a');
    await clock.advance(60_000);
    expect(started).toEqual(['a@0', 'a@100', 'a@300', 'a@700', 'a@1700', 'a@1800']);
  });

  it('counts retries from the start after a success, also if the key was added meanwhile', async () => {
    const results: (() => WorkResult)[] = [
      () => ({ kind: 'Retry' }),
      () => {
        queue.addAt('a', 500);
        return DONE;
      },
      () => ({ kind: 'Retry' }),
    ];
    const { queue, clock, started } = stage(() => results.shift()?.() ?? DONE);
    queue.add('a');
    await clock.advance(60_000);
    expect(started).toEqual(['a@0', 'a@100', 'a@500', 'a@600']);
  });

  it('retries no sooner than the server allows', async () => {
    const results: WorkResult[] = [{ kind: 'Retry', afterMs: 9_000 }];
    const { queue, clock, started } = stage(() => results.shift() ?? DONE);
    queue.add('a');
    await clock.advance(60_000);
    expect(started).toEqual(['a@0', 'a@9000']);
  });

  it('never waits longer than half a minute between retries', async () => {
    const { queue, clock, started } = stage(() => ({ kind: 'Retry' }));
    queue.add('a');
    await clock.advance(600_000);
    const times = started.map((entry) => Number(entry.slice(2)));
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.max(...waits)).toBe(15_000);
  });

  it('takes a worker that throws for one that asks to retry, and says so', async () => {
    const results: (() => WorkResult)[] = [
      () => {
        throw new Error('worker bug');
      },
    ];
    const { queue, clock, started, errors } = stage(() => results.shift()?.() ?? DONE);
    queue.add('a');
    await clock.advance(1_000);
    expect(started).toEqual(['a@0', 'a@100']);
    expect(errors).toHaveLength(1);
  });

  it('takes an impossible time of a worker for the longest wait', async () => {
    const results: WorkResult[] = [{ kind: 'RunAgainAfter', ms: NaN }];
    const { queue, clock, started } = stage(() => results.shift() ?? DONE);
    queue.add('a');
    await clock.advance(60_000);
    expect(started).toEqual(['a@0', 'a@30000']);
  });

  it('cuts a backoff short when the key is added', async () => {
    const results: WorkResult[] = [{ kind: 'Retry', afterMs: 9_000 }];
    const { queue, clock, started } = stage(() => results.shift() ?? DONE);
    queue.add('a');
    await clock.advance(1_000);
    queue.add('a');
    await clock.advance(60_000);
    expect(started).toEqual(['a@0', 'a@1000']);
  });

  it('forgets a key that waits, and one that runs once it has ended', async () => {
    const { worker, open } = gate();
    const { queue, clock, started } = stage(worker);
    queue.add('a');
    queue.add('a');
    queue.addAt('b', 100);
    queue.forget('a');
    queue.forget('b');
    open();
    await clock.advance(1_000);
    expect(started).toEqual(['a@0']);
    expect(queue.size).toBe(0);
  });

  it('waits at stop for what runs and starts nothing more', async () => {
    const { worker, open } = gate();
    const { queue, clock, started } = stage(worker);
    queue.add('a');
    queue.add('b');
    queue.addAt('c', 100);
    let stopped = false;
    const stopping = queue.stop().then(() => (stopped = true));
    await clock.advance(1_000);
    expect(stopped).toBe(false);
    open();
    await stopping;
    queue.add('d');
    await clock.advance(1_000);
    expect(started).toEqual(['a@0']);
    expect(clock.timers).toBe(0);
  });

  it('tells the liveness probe of a key whose work does not end, and not of one that waits', async () => {
    const { worker, open } = gate();
    const { queue, clock } = stage(worker);
    queue.add('a');
    queue.addAt('b', 86_400_000);
    await clock.advance(700_000);
    expect(queue.liveCheck.problem()).toBe('in the same work for 700 s');
    open();
    await clock.advance(700_000);
    expect(queue.liveCheck.problem()).toBeUndefined();
  });

  it('stops at once when nothing runs', async () => {
    await stage().queue.stop();
  });

  it.each([NaN, Infinity])('refuses %d as a deadline', (deadline) => {
    expect(() => {
      stage().queue.addAt('a', deadline);
    }).toThrow('the deadline of a must be a finite number');
  });

  it.each([0, 1.5, NaN])('refuses %d as a number of workers', (concurrency) => {
    expect(() => stage(undefined, { concurrency })).toThrow('concurrency must be 1 or more');
  });
});
