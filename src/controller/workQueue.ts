/** Work by key: at its time, one at a time per key, the urgent first, again if it asks for it. */
import { Watchdog } from '../kube';
import type { Clock, Timer } from '../kube';
import type { HealthCheck, Logger } from '../observability';
import { DeadlineHeap } from './deadlineHeap';

/** What the worker says about its key. */
export type WorkResult =
  /** Nothing more until the key is added again. */
  | { readonly kind: 'Done' }
  /** It went well and is to be looked at again then; milliseconds. */
  | { readonly kind: 'RunAgainAfter'; readonly ms: number }
  /** It failed: again after a backoff that grows with each Retry in a row, but not before `afterMs`. */
  | { readonly kind: 'Retry'; readonly afterMs?: number };

/** All ready critical keys run before any normal one. */
export type WorkBand = 'critical' | 'normal';

export interface WorkQueueOptions {
  readonly worker: (key: string) => Promise<WorkResult>;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'error'>;
  /** Keys worked on at the same time. */
  readonly concurrency: number;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface WorkQueueDepth {
  /** Due, but no worker is free. */
  readonly ready: number;
  /** Due later. */
  readonly waiting: number;
  readonly running: number;
}

interface Schedule {
  /** Monotonic milliseconds. */
  readonly deadline: number;
  readonly band: WorkBand;
}

interface Run {
  /** What was asked for while it runs. */
  next?: Schedule;
  /** Asked to be forgotten while it runs: its result does not bring the key back. */
  forgotten: boolean;
  readonly band: WorkBand;
}

/** client-go's rate limiter starts at 5 ms; the first retry of a storm need not be that soon. */
const FIRST_RETRY_MS = 200;
/** A revert that is due must not wait much longer than the fault lasts. */
const LONGEST_RETRY_MS = 30_000;

/**
 * Guarantees: a key is in the queue at most once; of several deadlines the earliest stands; no key
 * has two workers at once, and one that is added while it runs runs again after; a key that is done
 * leaves nothing behind.
 * Caveats: an addition cuts a key's backoff short, since it brings news. Normal keys wait as long
 * as critical ones keep coming.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #watchdog: Watchdog;
  readonly #waiting = new DeadlineHeap();
  readonly #ready: Readonly<Record<WorkBand, Set<string>>> = {
    critical: new Set(),
    normal: new Set(),
  };
  /** The bands of waiting keys. */
  readonly #bands = new Map<string, WorkBand>();
  readonly #running = new Map<string, Run>();
  /** Retries in a row, of keys that are to be tried again. */
  readonly #failures = new Map<string, number>();
  #timer: { readonly deadline: number; readonly handle: Timer } | undefined;
  #isStopped = false;
  #stopped: Promise<void> | undefined;
  #onIdle: () => void = () => undefined;

  constructor(options: WorkQueueOptions) {
    if (!Number.isInteger(options.concurrency) || options.concurrency < 1) {
      throw new RangeError(`concurrency must be 1 or more, not ${options.concurrency}`);
    }
    this.#options = options;
    this.#watchdog = new Watchdog('work', options.clock);
  }

  /** Keys in any state. */
  get size(): number {
    const { ready, waiting, running } = this.depth();
    return ready + waiting + running;
  }

  /** Whether the key is to run, runs, or waits for its time. */
  has(key: string): boolean {
    const { critical, normal } = this.#ready;
    return this.#bands.has(key) || this.#running.has(key) || critical.has(key) || normal.has(key);
  }

  /** Keys whose retries are counted; none of them is done. */
  get remembered(): number {
    return this.#failures.size;
  }

  depth(): WorkQueueDepth {
    return {
      ready: this.#ready.critical.size + this.#ready.normal.size,
      waiting: this.#waiting.size,
      running: this.#running.size,
    };
  }

  /** Whether each key that is worked on comes to an end. */
  get liveCheck(): HealthCheck {
    return this.#watchdog.check;
  }

  /** To run as soon as a worker is free. */
  add(key: string, band: WorkBand = 'normal'): void {
    this.addAt(key, this.#options.clock.monotonic(), band);
  }

  /**
   * To run at a time of the monotonic clock; a later time than the one known changes nothing.
   *
   * @throws RangeError if the time is not a finite number
   */
  addAt(key: string, deadline: number, band: WorkBand = 'normal'): void {
    if (!Number.isFinite(deadline)) {
      throw new RangeError(`the deadline of ${key} must be a finite number, not ${deadline}`);
    }
    if (this.#isStopped) {
      return;
    }
    const run = this.#running.get(key);
    if (run === undefined) {
      this.#schedule(key, { deadline, band });
      this.#pump();
    } else {
      run.next = earliest(run.next, { deadline, band });
    }
  }

  /** Takes the key out with its backoff; work on it that runs is left to end. */
  forget(key: string): void {
    this.#unschedule(key);
    this.#failures.delete(key);
    const run = this.#running.get(key);
    if (run !== undefined) {
      run.forgotten = true;
      delete run.next;
    }
  }

  /** Starts no more work; settles when what runs has ended. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.handle.cancel();
    this.#timer = undefined;
    this.#stopped ??= new Promise((resolve) => {
      this.#onIdle = resolve;
    });
    if (this.#running.size === 0) {
      this.#onIdle();
    }
    return this.#stopped;
  }

  #schedule(key: string, wanted: Schedule): void {
    if (this.#ready.critical.has(key)) {
      return;
    }
    if (this.#ready.normal.has(key)) {
      if (wanted.band === 'critical' && wanted.deadline <= this.#options.clock.monotonic()) {
        this.#ready.normal.delete(key);
        this.#ready.critical.add(key);
      }
      return;
    }
    const { deadline, band } = earliest(this.#waitingSchedule(key), wanted);
    this.#waiting.set(key, deadline);
    this.#bands.set(key, band);
  }

  #waitingSchedule(key: string): Schedule | undefined {
    const deadline = this.#waiting.deadlineOf(key);
    return deadline === undefined
      ? undefined
      : { deadline, band: this.#bands.get(key) ?? 'normal' };
  }

  #unschedule(key: string): void {
    this.#waiting.delete(key);
    this.#bands.delete(key);
    this.#ready.critical.delete(key);
    this.#ready.normal.delete(key);
  }

  /** Moves what is due to the ready keys, starts as many as may run, sets the timer for the rest. */
  #pump(): void {
    if (this.#isStopped) {
      return;
    }
    const now = this.#options.clock.monotonic();
    for (
      let first = this.#waiting.first();
      first !== undefined && first.deadline <= now;
      first = this.#waiting.first()
    ) {
      const band = this.#bands.get(first.key) ?? 'normal';
      this.#unschedule(first.key);
      this.#ready[band].add(first.key);
    }
    this.#startReady('critical');
    this.#startReady('normal');
    this.#setTimer();
  }

  #startReady(band: WorkBand): void {
    for (const key of this.#ready[band]) {
      if (this.#running.size >= this.#options.concurrency) {
        return;
      }
      this.#ready[band].delete(key);
      const run: Run = { band, forgotten: false };
      this.#running.set(key, run);
      void this.#work(key, run);
    }
  }

  #setTimer(): void {
    const { clock } = this.#options;
    const deadline = this.#waiting.first()?.deadline;
    if (deadline === this.#timer?.deadline) {
      return;
    }
    this.#timer?.handle.cancel();
    this.#timer = undefined;
    if (deadline !== undefined) {
      const handle = clock.setTimer(deadline - clock.monotonic(), () => {
        this.#timer = undefined;
        this.#pump();
      });
      this.#timer = { deadline, handle };
    }
  }

  async #work(key: string, run: Run): Promise<void> {
    const result = await this.#result(key);
    this.#running.delete(key);
    const next = earliestOf(run.next, this.#asked(key, run, result));
    if (next !== undefined) {
      this.#schedule(key, next);
    }
    this.#pump();
    if (this.#isStopped && this.#running.size === 0) {
      this.#onIdle();
    }
  }

  async #result(key: string): Promise<WorkResult> {
    try {
      return await this.#watchdog.during(() => this.#options.worker(key));
    } catch (error) {
      this.#options.logger.error({ error, key }, 'worker threw, the key is tried again');
      return { kind: 'Retry' };
    }
  }

  #asked(key: string, run: Run, result: WorkResult): Schedule | undefined {
    const now = this.#options.clock.monotonic();
    const { band } = run;
    if (run.forgotten) {
      return undefined;
    }
    switch (result.kind) {
      case 'Done':
        this.#failures.delete(key);
        return undefined;
      case 'RunAgainAfter':
        this.#failures.delete(key);
        return { deadline: now + atLeastZero(result.ms), band };
      case 'Retry': {
        const failures = (this.#failures.get(key) ?? 0) + 1;
        this.#failures.set(key, failures);
        const ms = Math.max(this.#backoff(failures), atLeastZero(result.afterMs ?? 0));
        return { deadline: now + ms, band };
      }
    }
  }

  /** Doubles up to the longest wait; between half of it and all of it by chance. */
  #backoff(failures: number): number {
    const full = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);
    return full * (0.5 + this.#options.random() / 2);
  }
}

/** The earlier deadline, and the more urgent band: news of either kind never makes a key wait. */
function earliest(a: Schedule | undefined, b: Schedule): Schedule {
  return a === undefined
    ? b
    : {
        deadline: Math.min(a.deadline, b.deadline),
        band: a.band === 'critical' ? a.band : b.band,
      };
}

function earliestOf(a: Schedule | undefined, b: Schedule | undefined): Schedule | undefined {
  return b === undefined ? a : earliest(a, b);
}

/** A worker's arithmetic gone wrong must not make a key run never. */
function atLeastZero(ms: number): number {
  return Number.isFinite(ms) ? Math.max(ms, 0) : LONGEST_RETRY_MS;
}
