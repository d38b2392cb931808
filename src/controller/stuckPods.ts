/** The pods whose revert does not get on by itself, and why. */
import type { StuckReason } from '../boost-engine';
import type { Metrics } from '../observability';
import { formatName } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

/** The engine's reasons, and the API server's refusal. */
export type StuckCode = StuckReason | 'Refused';

export class StuckPods {
  readonly #codes = new Map<string, StuckCode>();
  readonly #gauge: Metrics['stuckPods'];

  readonly #onChange: (pod: ObjectName) => void;

  /** `onChange` hears of each pod that gets stuck, or gets on again. */
  constructor(gauge: Metrics['stuckPods'], onChange: (pod: ObjectName) => void) {
    this.#gauge = gauge;
    this.#onChange = onChange;
  }

  /** True if the pod was not stuck for this reason before. */
  add(pod: ObjectName, code: StuckCode): boolean {
    const before = this.#codes.get(formatName(pod));
    if (before === code) return false;
    if (before !== undefined) this.#gauge.dec({ reason: before });
    this.#codes.set(formatName(pod), code);
    this.#gauge.inc({ reason: code });
    this.#onChange(pod);
    return true;
  }

  remove(pod: ObjectName): void {
    const code = this.#codes.get(formatName(pod));
    if (code === undefined) return;
    this.#codes.delete(formatName(pod));
    this.#gauge.dec({ reason: code });
    this.#onChange(pod);
  }

  /** Forgets all of them, without a word. */
  clear(): void {
    this.#codes.clear();
    this.#gauge.reset();
  }

  has(pod: ObjectName): boolean {
    return this.#codes.has(formatName(pod));
  }
}
