/** Numbers that look random and are the same for the same seed. */

export class SeededRandom {
  #state: number;

  /** Any whole number. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1); mulberry32, https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws RangeError for an empty list */
  pick<T>(items: readonly T[]): T {
    const [first] = this.shuffled(items);
    if (first === undefined) throw new RangeError('nothing to pick from');
    return first;
  }

  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, rank: this.next() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ item }) => item);
  }

  /** Milliseconds from one event to the next, where they come by chance at this mean distance. */
  gapMs(meanMs: number): number {
    return Math.round(-meanMs * Math.log(1 - this.next()));
  }
}
