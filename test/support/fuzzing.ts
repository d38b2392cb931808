/** How often properties run, and proof that their interesting branches were reached. */
import { expect } from '@jest/globals';

/** FC_NUM_RUNS=20000 searches for longer; a failure prints the seed and path to replay it. */
const NUM_RUNS = Number(process.env.FC_NUM_RUNS ?? 300);

/** For `fc.assert`; a property whose single run is long takes `share` of the runs. */
export function runs(share = 1): { readonly numRuns: number } {
  return { numRuns: Math.max(1, Math.round(NUM_RUNS * share)) };
}

/** How much rarer than its share a branch may be in one run of the tests. */
const MARGIN = 4;

/** Counts what the runs of a property came across. */
export class Tally {
  readonly #counts = new Map<string, number>();
  #total = 0;

  /** Once per run, with everything that was seen in it. */
  count(...branches: readonly string[]): void {
    this.#total += 1;
    for (const branch of new Set(branches)) {
      this.#counts.set(branch, (this.#counts.get(branch) ?? 0) + 1);
    }
  }

  /**
   * Fails where a branch was seen much more rarely than in its share (0 to 1) of the runs: a vacuous
   * property. Chance is left a factor of MARGIN, and a branch that few runs would show is let go, so
   * that no seed fails for the luck of its draw.
   */
  expectShares(shares: Readonly<Record<string, number>>): void {
    const rare = Object.entries(shares)
      .map(([branch, share]) => ({
        branch,
        seen: this.#counts.get(branch) ?? 0,
        needed: Math.floor((share * this.#total) / MARGIN),
      }))
      .filter(({ seen, needed }) => seen < needed);
    expect({ rare, seen: rare.length === 0 ? '' : [...this.#counts] }).toEqual({
      rare: [],
      seen: '',
    });
  }
}
