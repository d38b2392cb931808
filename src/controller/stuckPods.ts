/** The pods whose revert does not get on by itself, and why. */
import type { StuckReason } from '../boost-engine';
import type { Metrics } from '../observability';
import { formatName } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

/** The engine's reasons, and the API server's refusal. */
export type StuckCode = StuckReason | 'Refused';

export interface StuckPod {
  readonly code: StuckCode;
  /** For people: the engine's sentence, or the API server's. */
  readonly message: string;
}

export class StuckPods {
  readonly #pods = new Map<string, StuckPod>();
  readonly #gauge: Metrics['stuckPods'];

  readonly #onChange: (pod: ObjectName) => void;

  /** `onChange` hears of each pod that gets stuck, or gets on again. */
  constructor(gauge: Metrics['stuckPods'], onChange: (pod: ObjectName) => void) {
    this.#gauge = gauge;
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#pods.size;
  }

  /** True if the pod was not stuck for this reason before. */
  add(pod: ObjectName, code: StuckCode, message: string): boolean {
    const before = this.get(pod);
    this.#pods.set(formatName(pod), { code, message });
    if (before?.code === code) return false;
    if (before !== undefined) this.#gauge.dec({ reason: before.code });
    this.#gauge.inc({ reason: code });
    this.#onChange(pod);
    return true;
  }

  remove(pod: ObjectName): void {
    const before = this.get(pod);
    if (before === undefined) return;
    this.#pods.delete(formatName(pod));
    this.#gauge.dec({ reason: before.code });
    this.#onChange(pod);
  }

  /** Forgets all of them, without a word. */
  clear(): void {
    this.#pods.clear();
    this.#gauge.reset();
  }

  has(pod: ObjectName): boolean {
    return this.#pods.has(formatName(pod));
  }

  get(pod: ObjectName): StuckPod | undefined {
    return this.#pods.get(formatName(pod));
  }
}
