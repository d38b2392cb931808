/** The acting part of the controller: a queue of pods and boosts, and what is done with each. */
import type { RaiseSettings, Raising, RevertSettings } from '../boost-engine';
import { ApiError, failureAction } from '../kube';
import type { Clock, JsonObject, KubeClient } from '../kube';
import type { HealthCheck, Logger, Metrics } from '../observability';
import { BoostDirectory } from './boostDirectory';
import { BoostStatusWriter } from './boostStatusWriter';
import { boostNameOf } from './clusterView';
import type { ClusterView } from './clusterView';
import { markedPods } from './markedPods';
import { MissedPods } from './missedPods';
import { PodRaiser } from './podRaiser';
import { PodReverter } from './podReverter';
import { formatKey, formatName, nameOf, parseKey } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import { SelfCheck } from './selfCheck';
import { StuckPods } from './stuckPods';
import { Sweep } from './sweep';
import { WorkQueue } from './workQueue';
import type { WorkResult } from './workQueue';

export interface ReconcileSettings extends RevertSettings, RaiseSettings {
  /** Milliseconds between two rounds of the safety net. */
  readonly sweepIntervalMs: number;
  /** Milliseconds between two searches for boosted pods that have lost their label. */
  readonly unlabelledSweepIntervalMs: number;
}

export interface ReconcileLoopOptions {
  readonly view: ClusterView;
  /** Whether this process may act at this very moment; asked before each piece of work. */
  readonly mayAct: () => boolean;
  /** Whether pods are raised in place at this very moment. */
  readonly raising: () => Raising;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly settings: ReconcileSettings;
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * Keys worked on at the same time. Each costs one request of some 10 ms, and the API server shares
 * out its seats by itself (429 with Retry-After), so a storm is worked through at its pace.
 */
const CONCURRENCY = 16;

/** A status is written once for all that happens within this time. */
const STATUS_DELAY_MS = 200;

/** A finding of the sweep names so many pods; the rest is a number. */
const MAX_LOGGED_PODS = 10;

/**
 * Runs from taking over until `stop`. All that it remembers is gone with it: the next one judges
 * every pod anew, from what stands on it.
 */
export class ReconcileLoop {
  readonly #options: ReconcileLoopOptions;
  readonly #stuckPods: StuckPods;
  readonly #directory: BoostDirectory;
  readonly #reverter: PodReverter;
  readonly #raiser: PodRaiser;
  readonly #missedPods: MissedPods;
  readonly #statusWriter: BoostStatusWriter;
  readonly #queue: WorkQueue;
  readonly #sweep: Sweep;
  readonly #unlabelledSweep: Sweep;

  constructor(options: ReconcileLoopOptions) {
    const { view, clock, logger, metrics, settings, random } = options;
    this.#options = options;
    this.#stuckPods = new StuckPods(metrics.stuckPods, (name) => {
      const pod = view.pod(name);
      if (pod !== undefined) this.queueStatusOf(pod);
    });
    this.#directory = new BoostDirectory(view, clock);
    const selfCheck = new SelfCheck(options);
    this.#reverter = new PodReverter({
      ...options,
      boosts: this.#directory,
      stuckPods: this.#stuckPods,
      onRefused: ({ namespace }) => {
        selfCheck.doubt(namespace);
      },
      onRaise: (name) => {
        this.queueRaise(name);
      },
    });
    this.#raiser = new PodRaiser(options);
    this.#missedPods = new MissedPods({
      ...options,
      isCandidate: (pod) => this.#raiser.isCandidate(pod),
      onFound: (pod) => {
        this.queueRaise(nameOf(pod));
      },
    });
    this.#statusWriter = new BoostStatusWriter({
      ...options,
      stuckPods: this.#stuckPods,
      selfCheck,
    });
    this.#queue = new WorkQueue({
      worker: (key) => this.#reconcile(key),
      clock,
      logger,
      concurrency: CONCURRENCY,
      random,
    });
    this.#sweep = new Sweep({
      clock,
      logger,
      intervalMs: settings.sweepIntervalMs,
      round: () => {
        this.#sweepOnce();
      },
    });
    this.#unlabelledSweep = new Sweep({
      clock,
      logger,
      intervalMs: settings.unlabelledSweepIntervalMs,
      round: (signal) => this.#queueUnlabelled(signal),
    });
  }

  /** Keys that are due and wait for a worker. */
  get backlog(): number {
    return this.#queue.depth().ready;
  }

  get liveCheck(): HealthCheck {
    return this.#queue.liveCheck;
  }

  start(): void {
    this.queueAll();
    this.#sweep.start();
    this.#unlabelledSweep.start('AtOnce');
  }

  /** Resolves when the work that runs has ended; nothing is begun any more. */
  async stop(): Promise<void> {
    this.#sweep.stop();
    this.#unlabelledSweep.stop();
    await this.#queue.stop();
    this.#stuckPods.clear();
  }

  queueAll(): void {
    for (const pod of this.#options.view.pods) this.queuePod(pod);
    const boosts = this.#options.view.boosts.map(nameOf);
    for (const boost of boosts) {
      this.queueStatus(boost);
      this.queueMissedPods(boost);
    }
    for (const namespace of new Set(boosts.map((boost) => boost.namespace))) {
      this.queueStartingPods(namespace);
    }
  }

  queuePod(pod: JsonObject): void {
    this.#queue.add(formatKey({ ...nameOf(pod), kind: 'Pod' }), 'critical');
  }

  /** Reverts come first: a raise that comes late is a slow start, as without a boost. */
  queueRaise(name: ObjectName): void {
    this.#queue.add(formatKey({ ...name, kind: 'Raise' }), 'normal');
  }

  /** Pods of the namespace that start and carry no boost. */
  queueStartingPods(namespace: string): void {
    for (const pod of this.#options.view.startingPodsIn(namespace)) this.queueRaise(nameOf(pod));
  }

  /** A pod that is not starting any more may not be ready yet, and be known to no watch. */
  queueStartedPod(pod: JsonObject): void {
    if (this.#raiser.isCandidate(pod)) this.queueRaise(nameOf(pod));
  }

  /** The pods that run and may have missed the boost. */
  queueMissedPods(boost: ObjectName): void {
    if (this.#options.settings.catchUpMs === 0) return;
    this.#queue.add(formatKey({ ...boost, kind: 'MissedPods' }), 'normal');
  }

  /** A pod that left the watch may only have lost its label, unless that was taken off here. */
  queueGonePod(pod: JsonObject): void {
    this.#raiser.forget(pod);
    if (!this.#reverter.tookMarkerOff(pod)) this.queuePod(pod);
  }

  /** The status of the boost that the pod's label names. */
  queueStatusOf(pod: JsonObject): void {
    const boost = boostNameOf(pod);
    if (boost !== undefined) this.queueStatus(boost);
  }

  queueStatus(name: ObjectName): void {
    const due = this.#options.clock.monotonic() + STATUS_DELAY_MS;
    this.#queue.addAt(formatKey({ ...name, kind: 'Boost' }), due, 'normal');
  }

  async #reconcile(text: string): Promise<WorkResult> {
    const key = parseKey(text);
    // Leadership ended while this waited: the next leader judges everything anew.
    if (key === undefined || !this.#options.mayAct()) return { kind: 'Done' };
    try {
      switch (key.kind) {
        case 'Pod':
          return await this.#reverter.reconcile(key);
        case 'Raise':
          return await this.#raiser.reconcile(key);
        case 'MissedPods':
          await this.#missedPods.find(key);
          return { kind: 'Done' };
        case 'Boost':
          return await this.#statusWriter.reconcile(key);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.#afterFailure(text, error);
    }
  }

  #afterFailure(key: string, error: ApiError): WorkResult {
    const action = failureAction(error.failure);
    switch (action.kind) {
      case 'Drop':
        return { kind: 'Done' };
      case 'Retry':
      case 'Terminal':
        this.#options.logger.warn(
          { key, failure: error.failure.kind, detail: error.message },
          'call failed, trying again',
        );
        return 'afterMs' in action ? { kind: 'Retry', afterMs: action.afterMs } : { kind: 'Retry' };
    }
  }

  /**
   * Queues what is due. A pod that is due and that nobody has queued was brought up by no event and
   * no timer: it is counted, since only a fault loses those.
   */
  #sweepOnce(): void {
    const { view } = this.#options;
    const reverts = view.pods.filter((pod) => this.#reverter.isDue(pod)).map(nameOf);
    const raises = [...view.pods, ...view.startingPods]
      .filter((pod) => this.#raiser.isDue(pod))
      .map(nameOf);
    this.#count(reverts.filter((pod) => !this.#queue.has(formatKey({ ...pod, kind: 'Pod' }))));
    this.#count(raises.filter((pod) => !this.#queue.has(formatKey({ ...pod, kind: 'Raise' }))));
    for (const pod of reverts) this.#queue.add(formatKey({ ...pod, kind: 'Pod' }), 'critical');
    for (const pod of raises) this.queueRaise(pod);
    this.#directory.forgetUnnamed();
  }

  #count(lost: readonly ObjectName[]): void {
    if (lost.length === 0) return;
    const { logger, metrics } = this.#options;
    metrics.sweepFindings.inc(lost.length);
    const pods = lost.slice(0, MAX_LOGGED_PODS).map(formatName);
    logger.warn({ pods, count: lost.length }, 'the sweep found pods that were due');
  }

  /** A pod that lost its label while no controller ran is in no watch, and no event tells of it. */
  async #queueUnlabelled(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#options;
    try {
      for await (const marked of markedPods(client, signal)) {
        const lost = marked.filter(({ isLabelled }) => !isLabelled);
        if (lost.length === 0) continue;
        const pods = lost.slice(0, MAX_LOGGED_PODS).map(formatName);
        logger.warn({ pods, count: lost.length }, 'boosted pods without the label');
        for (const pod of lost) this.#queue.add(formatKey({ ...pod, kind: 'Pod' }), 'critical');
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ error }, 'the search for boosted pods without the label failed');
    }
  }
}
