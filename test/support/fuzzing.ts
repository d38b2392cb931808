/** How often properties run, and proof that their interesting branches were reached. */
import { expect } from '@jest/globals';

/** FC_NUM_RUNS=20000 searches for longer; a failure prints the seed and path to replay it. */
const NUM_RUNS = Number(process.env.FC_NUM_RUNS ?? 300);

/** For `fc.assert`; a property whose single run is long takes `share` of the runs. */
export function runs(share = 1): { readonly numRuns: number } {
  return { numRuns: Math.max(1, Math.round(NUM_RUNS * share)) };
}

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

  /** Fails where a branch was seen in less than the share (0 to 1) of the runs: a vacuous property. */
  expectShares(shares: Readonly<Record<string, number>>): void {
    const rare = Object.entries(shares)
      .map(([branch, share]) => ({
        branch,
        seen: (this.#counts.get(branch) ?? 0) / this.#total,
        share,
      }))
      .filter(({ seen, share }) => !(seen >= share));
    expect({ rare, seen: rare.length === 0 ? '' : [...this.#counts] }).toEqual({
      rare: [],
      seen: '',
    });
  }
}
