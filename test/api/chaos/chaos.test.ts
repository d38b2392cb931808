/**
 * Everything at once: pods created all the time while processes, API server and boosts are ended,
 * paused and changed by chance, and the whole history checked afterwards. `npm run test:chaos` makes
 * it long; CHAOS_MINUTES, CHAOS_SEED and CHAOS_KEEP_LOGS are what it sets.
 */
import { it } from '@jest/globals';
import { makePlan } from './plan';
import type { PlanOptions } from './plan';
import { describeProblems, describeResult } from './report';
import { isClean, runChaos } from './run';

/** Starting, and waiting for quiet after the last pod. */
const AROUND_MS = 600_000;

const minutes = Number(process.env.CHAOS_MINUTES ?? '0');
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const keepLogs = process.env.CHAOS_KEEP_LOGS === 'true' ? 'Always' : 'OnFailure';

/** Rates that two cores keep up with. */
const options: PlanOptions =
  minutes > 0
    ? { seed, durationMs: minutes * 60_000, podsPerSecond: 3, faultEveryMs: 6_500 }
    : { seed, durationMs: 40_000, podsPerSecond: 3, faultEveryMs: 3_300 };

it(
  'no pod misses its boost or keeps it, whatever happens',
  async () => {
    say(`chaos with seed ${seed} for ${options.durationMs / 1_000} s`);
    const result = await runChaos(makePlan(options), { say, keepLogs });
    say(describeResult(result));
    // Not by expect, which would put all of it on one line.
    if (!isClean(result)) throw new Error(describeProblems(result));
  },
  options.durationMs + AROUND_MS,
);

/** Past Jest, which would add a stack to every line. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
