/** The election under every order of events: late, lost and refused calls, pauses, wrong clocks. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LeaseElector, sleep } from '../../src/kube';
import type { Clock, KubeClient, Timer } from '../../src/kube';
import { createLogger } from '../../src/observability';
import { runs } from '../support/fuzzing';
import { ManualClock } from '../support/manualClock';
import { SimulatedLeaseApi } from '../support/simulatedLeaseApi';
import type { CallFate } from '../support/simulatedLeaseApi';

const SETTINGS = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 1_000 };

/** How finely a run is looked at; the rules have a margin of 2 s. */
const STEP_MS = 50;

/** A process on a machine: it can be paused, and its wall clock can be wrong by anything. */
class Machine implements Clock {
  readonly #base: ManualClock;
  readonly #wrongByMs: number;
  #pausedFor: (() => void)[] | undefined;

  constructor(base: ManualClock, wrongByMs: number) {
    this.#base = base;
    this.#wrongByMs = wrongByMs;
  }

  get isPaused(): boolean {
    return this.#pausedFor !== undefined;
  }

  now(): number {
    return this.#base.now() + this.#wrongByMs;
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  /** What falls due during a pause happens when the process wakes up. */
  setTimer(ms: number, fn: () => void): Timer {
    return this.#base.setTimer(ms, () => {
      if (this.#pausedFor === undefined) fn();
      else this.#pausedFor.push(fn);
    });
  }

  pause(): void {
    this.#pausedFor ??= [];
  }

  resume(): void {
    const missed = this.#pausedFor ?? [];
    this.#pausedFor = undefined;
    for (const fn of missed) fn();
  }
}

interface Candidate {
  readonly machine: Machine;
  readonly elector: LeaseElector;
  readonly terms: { elected: number; deposed: number };
}

function candidate(
  index: number,
  machine: Machine,
  client: Pick<KubeClient, 'get' | 'list' | 'create' | 'patch' | 'watch' | 'serves'>,
): Candidate {
  const unused = () => Promise.reject(new Error('not part of an election'));
  const terms = { elected: 0, deposed: 0 };
  const elector = new LeaseElector({
    client: { ...client, replace: unused, delete: unused, close: () => Promise.resolve() },
    clock: machine,
    logger: createLogger('silent', {}),
    lease: { namespace: 'ns', name: 'lease' },
    identity: `candidate-${index}`,
    settings: SETTINGS,
    random: () => 0.5,
    onElected: () => {
      terms.elected += 1;
    },
    onDeposed: () => {
      terms.deposed += 1;
      return Promise.resolve();
    },
    onSilence: () => undefined,
  });
  return { machine, elector, terms };
}

const fate: fc.Arbitrary<CallFate> = fc.record({
  there: fc.oneof({ weight: 4, arbitrary: fc.nat(200) }, { weight: 1, arbitrary: fc.nat(5_000) }),
  back: fc.oneof({ weight: 4, arbitrary: fc.nat(200) }, { weight: 1, arbitrary: fc.nat(5_000) }),
  lost: fc.oneof(
    { weight: 6, arbitrary: fc.constant('Nothing' as const) },
    { weight: 1, arbitrary: fc.constantFrom('Request' as const, 'Answer' as const) },
  ),
});

const CALM: CallFate = { there: 5, back: 5, lost: 'Nothing' };

const scenario = fc.record({
  fates: fc.array(fate, { minLength: 20, maxLength: 200 }),
  wrongByMs: fc.array(fc.integer({ min: -3_600_000, max: 3_600_000 }), {
    minLength: 3,
    maxLength: 3,
  }),
  watch: fc.constantFrom('Delivers' as const, 'Dead' as const),
  pauses: fc.array(fc.record({ who: fc.nat(2), at: fc.nat(60_000), forMs: fc.nat(20_000) }), {
    maxLength: 4,
  }),
});

async function play(
  { fates, wrongByMs, watch, pauses }: typeof scenario extends fc.Arbitrary<infer T> ? T : never,
  during: (candidates: readonly Candidate[], api: SimulatedLeaseApi) => void,
): Promise<{ candidates: readonly Candidate[]; clock: ManualClock; api: SimulatedLeaseApi }> {
  const clock = new ManualClock();
  let next = 0;
  const api = new SimulatedLeaseApi(clock, () => {
    next += 1;
    return fates[next] ?? CALM;
  });
  const candidates = wrongByMs.map((wrong, index) =>
    candidate(index, new Machine(clock, wrong), api.client(watch)),
  );
  for (const { elector } of candidates) elector.start();
  for (let at = 0; at < 60_000; at += STEP_MS) {
    for (const { who, at: from, forMs } of pauses) {
      const machine = candidates[who]?.machine;
      if (from >= at && from < at + STEP_MS) machine?.pause();
      if (from + forMs >= at && from + forMs < at + STEP_MS) machine?.resume();
    }
    await clock.advance(STEP_MS);
    during(candidates, api);
  }
  for (const { machine } of candidates) machine.resume();
  return { candidates, clock, api };
}

async function stopAll(candidates: readonly Candidate[], clock: ManualClock): Promise<void> {
  const stopped = Promise.all(candidates.map(({ elector }) => elector.stop()));
  await clock.advance(30_000);
  await stopped;
}

describe('an election', () => {
  // Two leaders send the same patches twice; the guards make that harmless, but it must stay rare.
  it('never has two that may act at one moment', async () => {
    let ledBySomebody = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (run) => {
        const { candidates, clock } = await play(run, (all) => {
          const leaders = all.filter(({ elector }) => elector.isLeading());
          ledBySomebody += leaders.length;
          expect(leaders.length).toBeLessThanOrEqual(1);
        });
        await stopAll(candidates, clock);
      }),
      runs(0.2),
    );
    expect(ledBySomebody).toBeGreaterThan(150 * runs(0.2).numRuns);
  });

  // A lease that nobody takes leaves every pod boosted.
  it('has a leader soon after the faults have ended, and a free lease after all have stopped', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (run) => {
        const calm = { ...run, fates: run.fates.slice(0, 40) };
        const { candidates, clock, api } = await play(calm, () => undefined);
        await clock.advance(60_000);
        expect(candidates.filter(({ elector }) => elector.isLeading())).toHaveLength(1);
        await stopAll(candidates, clock);
        expect(api.holder).toBe('');
        for (const { terms } of candidates) expect(terms.deposed).toBe(terms.elected);
      }),
      runs(0.1),
    );
  });

  // A rollout stops all within moments: one that wins just then must not take the lease with it.
  it('leaves a free lease, however the stops fall among the claims', async () => {
    const stops = fc.array(fc.nat(120), { minLength: 3, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(stops, fc.nat(60), async (delays, oneWayMs) => {
        const clock = new ManualClock();
        const api = new SimulatedLeaseApi(clock, () => ({
          there: oneWayMs,
          back: oneWayMs,
          lost: 'Nothing',
        }));
        const candidates = delays.map((_, index) =>
          candidate(index, new Machine(clock, 0), api.client('Delivers')),
        );
        for (const { elector } of candidates) elector.start();
        await clock.advance(20_000);
        const stopped = candidates.map(async ({ elector }, index) => {
          await sleep(clock, delays[index] ?? 0, new AbortController().signal);
          await elector.stop();
        });
        await clock.advance(10_000);
        await Promise.all(stopped);
        expect(api.holder).toBe('');
        for (const { terms } of candidates) expect(terms.deposed).toBe(terms.elected);
      }),
      runs(0.7),
    );
  });
});
