/**
 * Invariants of the work queue, under any order of additions, results and time:
 *
 * 1. a key never has two workers at once, and no more keys run than may;
 * 2. an addition is followed by a run, no later than its deadline if a worker is free;
 * 3. no run starts before the earliest deadline that was asked for;
 * 4. a critical key never starts after a normal one that was ready with it;
 * 5. when everything is done, nothing is left: no key, no timer.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DeadlineHeap } from '../../src/controller/deadlineHeap';
import { WorkQueue } from '../../src/controller/workQueue';
import type { WorkBand, WorkResult } from '../../src/controller/workQueue';
import { ManualClock } from '../support/manualClock';

type Command =
  | { readonly do: 'Add'; readonly key: string; readonly in: number; readonly band: WorkBand }
  | { readonly do: 'Forget'; readonly key: string }
  | { readonly do: 'Advance'; readonly ms: number };

interface Plan {
  readonly takes: number;
  readonly ends: 'Done' | 'Again' | 'Retry' | 'Throws';
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const band = fc.constantFrom<WorkBand>('normal', 'critical');
const time = fc.integer({ min: 0, max: 400 });

const addition = fc.record({ do: fc.constant('Add' as const), key, in: time, band });
const passing = fc.record({ do: fc.constant('Advance' as const), ms: time });
const forgetting = fc.record({ do: fc.constant('Forget' as const), key });
const additions = fc.array(fc.oneof(addition, passing), { maxLength: 60 });
const commands = fc.array(
  fc.oneof({ weight: 4, arbitrary: addition }, { weight: 4, arbitrary: passing }, forgetting),
  { maxLength: 60 },
);
const plans = fc.array(
  fc.record<Plan>({
    takes: fc.integer({ min: 0, max: 300 }),
    ends: fc.constantFrom('Done', 'Done', 'Again', 'Retry', 'Throws'),
  }),
  { maxLength: 40 },
);
const random = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

interface Start {
  readonly key: string;
  readonly at: number;
}

class Rig {
  readonly clock = new ManualClock();
  readonly starts: Start[] = [];
  readonly running = new Map<string, number>();
  mostAtOnce = 0;
  readonly queue: WorkQueue;
  readonly #plans: Plan[];

  constructor(concurrency: number, todo: readonly Plan[], chance: number) {
    this.#plans = [...todo];
    this.queue = new WorkQueue({
      clock: this.clock,
      logger: { error: () => undefined },
      concurrency,
      random: () => chance,
      worker: (of) => this.#work(of),
    });
  }

  async run(command: Command): Promise<void> {
    switch (command.do) {
      case 'Add':
        this.queue.addAt(command.key, this.clock.monotonic() + command.in, command.band);
        return;
      case 'Forget':
        this.queue.forget(command.key);
        return;
      case 'Advance':
        await this.clock.advance(command.ms);
        return;
    }
  }

  async #work(of: string): Promise<WorkResult> {
    this.starts.push({ key: of, at: this.clock.monotonic() });
    const atOnce = (this.running.get(of) ?? 0) + 1;
    this.running.set(of, atOnce);
    this.mostAtOnce = Math.max(this.mostAtOnce, atOnce);
    const plan = this.#plans.shift() ?? { takes: 0, ends: 'Done' };
    if (plan.takes > 0) {
      await new Promise<void>((resolve) => {
        this.clock.setTimer(plan.takes, resolve);
      });
    }
    this.running.set(of, atOnce - 1);
    return resultOf(plan);
  }
}

function resultOf({ ends }: Plan): WorkResult {
  switch (ends) {
    case 'Done':
      return { kind: 'Done' };
    case 'Again':
      return { kind: 'RunAgainAfter', ms: 50 };
    case 'Retry':
      return { kind: 'Retry' };
    case 'Throws':
      throw new Error('planned');
  }
}

/** Longer than every plan and the longest backoff together. */
const LONG_ENOUGH_MS = 3_000_000;

describe('the work queue', () => {
  // Two writers for one pod would race each other's patches.
  it('never has two workers for one key, nor more workers than it may', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        commands,
        plans,
        random,
        async (concurrency, todo, planned, chance) => {
          const rig = new Rig(concurrency, planned, chance);
          for (const command of todo) {
            await rig.run(command);
            expect(rig.queue.depth().running).toBeLessThanOrEqual(concurrency);
          }
          await rig.clock.advance(LONG_ENOUGH_MS);
          expect(rig.mostAtOnce).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  // A revert that is asked for and never comes leaves a pod boosted.
  it('runs a key after its last addition, whatever its worker said before', async () => {
    await fc.assert(
      fc.asyncProperty(additions, plans, random, async (todo, planned, chance) => {
        const rig = new Rig(2, planned, chance);
        const lastAdded = new Map<string, number>();
        for (const command of todo) {
          if (command.do === 'Add') lastAdded.set(command.key, rig.clock.monotonic());
          await rig.run(command);
        }
        await rig.clock.advance(LONG_ENOUGH_MS);
        for (const [of, at] of lastAdded) {
          expect(rig.starts.some((start) => start.key === of && start.at >= at)).toBe(true);
        }
      }),
    );
  });

  // The lateness of a revert is the product's promise; a timer that is early reverts a starting pod.
  it('starts a key at the earliest deadline asked for since it last started', async () => {
    await fc.assert(
      fc.asyncProperty(additions, async (todo) => {
        const rig = new Rig(5, [], 0);
        const wanted = new Map<string, number>();
        const expected: Start[] = [];
        for (const command of todo) {
          if (command.do === 'Add') {
            const deadline = rig.clock.monotonic() + command.in;
            wanted.set(command.key, Math.min(wanted.get(command.key) ?? Infinity, deadline));
          }
          await rig.run(command);
          // Workers end at once here, so what is due by now has started and is forgotten.
          await rig.clock.advance(0);
          for (const [of, at] of [...wanted].filter(([, due]) => due <= rig.clock.monotonic())) {
            expected.push({ key: of, at });
            wanted.delete(of);
          }
        }
        await rig.clock.advance(LONG_ENOUGH_MS);
        for (const [of, at] of wanted) expected.push({ key: of, at });
        expect(sorted(rig.starts)).toEqual(sorted(expected));
      }),
    );
  });

  // Giving CPU back goes before everything that only tells about it.
  it('starts all ready critical keys before any ready normal one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string(), band)), async (additionsAtOnce) => {
        const rig = new Rig(1, [{ takes: 10, ends: 'Done' }], 0);
        rig.queue.add('busy', 'critical');
        const bands = new Map<string, WorkBand>();
        for (const [of, asked] of additionsAtOnce.filter(([name]) => name !== 'busy')) {
          rig.queue.add(of, asked);
          bands.set(of, asked === 'critical' ? asked : (bands.get(of) ?? asked));
        }
        await rig.clock.advance(100);
        const order = rig.starts.slice(1).map((start) => bands.get(start.key));
        expect(order).toHaveLength(bands.size);
        expect(order.lastIndexOf('critical')).toBeLessThan(
          order.includes('normal') ? order.indexOf('normal') : Infinity,
        );
      }),
    );
  });

  // Keys are pods that come and go for months: what is kept for one of them is a leak.
  it('keeps nothing of keys that are done or forgotten', async () => {
    await fc.assert(
      fc.asyncProperty(commands, plans, random, async (todo, planned, chance) => {
        const rig = new Rig(3, planned, chance);
        for (const command of todo) await rig.run(command);
        await rig.clock.advance(LONG_ENOUGH_MS);
        expect(rig.queue.size).toBe(0);
        expect(rig.queue.remembered).toBe(0);
        expect(rig.clock.timers).toBe(0);
      }),
    );
  });

  // A deployment is stopped at any moment, and a lease is released only after work has ended.
  it('settles its stop when the last worker has ended, and starts none after it', async () => {
    await fc.assert(
      fc.asyncProperty(commands, plans, random, async (todo, planned, chance) => {
        const rig = new Rig(3, planned, chance);
        for (const command of todo) await rig.run(command);
        const stopping = rig.queue.stop();
        const started = rig.starts.length;
        await rig.clock.advance(LONG_ENOUGH_MS);
        await stopping;
        expect(rig.queue.depth().running).toBe(0);
        expect(rig.starts).toHaveLength(started);
        expect(rig.clock.timers).toBe(0);
      }),
    );
  });
});

describe('the heap of deadlines', () => {
  // It replaces a sorted list, so it must answer as a sorted list does.
  it('gives keys out as a sorted list would, after any moves and removals', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.integer({ min: 0, max: 30 }).map(String),
            fc.option(fc.integer({ min: 0, max: 100 }), { freq: 3 }),
          ),
          { size: '+1', maxLength: 200 },
        ),
        (moves) => {
          const heap = new DeadlineHeap();
          const model = new Map<string, number>();
          for (const [of, deadline] of moves) {
            if (deadline === null) {
              expect(heap.delete(of)).toBe(model.delete(of));
            } else {
              heap.set(of, deadline);
              model.set(of, deadline);
            }
            expect(heap.size).toBe(model.size);
            expect(heap.first()?.deadline).toBe(
              model.size === 0 ? undefined : Math.min(...model.values()),
            );
          }
          const out: number[] = [];
          for (let first = heap.first(); first !== undefined; first = heap.first()) {
            expect(first.deadline).toBe(model.get(first.key));
            out.push(first.deadline);
            heap.delete(first.key);
          }
          expect(out).toEqual([...model.values()].sort((a, b) => a - b));
        },
      ),
    );
  });
});

function sorted(starts: readonly Start[]): readonly Start[] {
  return [...starts].sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
}
