/** The operator: watches boosts and the pods that carry one, and queues what has to be looked at. */
import { ResourceEventType } from '@dot-i/k8s-operator';
import { BOOST_KEY, readMetadata } from '../boost-engine';
import type { BoostStatus, RevertSettings } from '../boost-engine';
import {
  ApiError,
  LIMIT_RANGES,
  PODS,
  ResilientOperator,
  STARTUP_CPU_BOOSTS,
  failureAction,
} from '../kube';
import type {
  JsonObject,
  RawResourceEvent,
  ResilientOperatorOptions,
  ResourceWatch,
} from '../kube';
import type { HealthCheck, Logger, Metrics } from '../observability';
import { BoostCatalog } from '../resources';
import { BoostDirectory } from './boostDirectory';
import { BoostStatusWriter } from './boostStatusWriter';
import { PodReverter } from './podReverter';
import { formatKey, formatName, parseKey } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import { StuckPods } from './stuckPods';
import { Sweep } from './sweep';
import { WorkQueue } from './workQueue';
import type { WorkResult } from './workQueue';

export interface BoostOperatorOptions extends ResilientOperatorOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly settings: RevertSettings & {
    /** Milliseconds between two rounds of the safety net. */
    readonly sweepIntervalMs: number;
  };
}

/**
 * Keys worked on at the same time. Each costs one request of some 10 ms, and the API server shares
 * out its seats by itself (429 with Retry-After), so a storm is worked through at its pace.
 */
const CONCURRENCY = 16;

/** A status is written once for all that happens within this time. */
const STATUS_DELAY_MS = 200;

export class BoostOperator extends ResilientOperator {
  readonly #options: BoostOperatorOptions;
  readonly #catalog = new BoostCatalog();
  readonly #stuckPods: StuckPods;
  readonly #queue: WorkQueue;
  readonly #directory: BoostDirectory;
  readonly #reverter: PodReverter;
  readonly #statusWriter: BoostStatusWriter;
  readonly #sweep: Sweep;
  #boosts: ResourceWatch | undefined;
  #pods: ResourceWatch | undefined;
  #limitRanges: ResourceWatch | undefined;

  constructor(options: BoostOperatorOptions) {
    super(options);
    const { client, clock, logger, metrics, settings } = options;
    this.#options = options;
    this.#stuckPods = new StuckPods(metrics.stuckPods, (name) => {
      const pod = this.#pods?.cache.get(name.namespace, name.name);
      if (pod !== undefined) this.#queueStatusOf(pod);
    });
    this.#directory = new BoostDirectory({
      catalog: this.#catalog,
      isComplete: () => this.#boosts?.isSynced === true,
      clock,
    });
    this.#reverter = new PodReverter({
      client,
      cachedPod: ({ namespace, name }) => this.#pods?.cache.get(namespace, name),
      limitRanges: (namespace) => this.#limitRanges?.cache.listNamespace(namespace) ?? [],
      boosts: this.#directory,
      stuckPods: this.#stuckPods,
      settings,
      clock,
      logger,
      metrics,
    });
    this.#statusWriter = new BoostStatusWriter({
      boost: (name) => this.#findBoost(name),
      podsOf: (name) => this.#podsOf(name),
      isStuck: (pod) => this.#stuckPods.has(nameOf(pod)),
      write: (boost, status) => this.#writeStatus(boost, status),
      clock,
      metrics,
    });
    this.#queue = new WorkQueue({
      worker: (key) => this.#reconcile(key),
      clock,
      logger,
      concurrency: CONCURRENCY,
      random: options.random ?? Math.random,
    });
    this.#sweep = new Sweep({
      clock,
      intervalMs: settings.sweepIntervalMs,
      round: () => {
        this.#lookAtAll();
      },
    });
  }

  /** Ready as soon as both caches were filled once; an API server that is away later changes nothing. */
  get checks(): readonly HealthCheck[] {
    const synced = (name: string, watch: () => ResourceWatch | undefined): HealthCheck => ({
      name,
      problem: () => (watch()?.isSynced === true ? undefined : 'the first list is not complete'),
    });
    return [synced('boosts', () => this.#boosts), synced('pods', () => this.#pods)];
  }

  protected override init(): Promise<void> {
    this.#boosts = this.watchSelected(STARTUP_CPU_BOOSTS, {}, (event) => {
      this.#onBoostEvent(event);
    });
    this.#pods = this.watchSelected(
      PODS,
      { labelSelector: BOOST_KEY, transform: withoutManagedFields },
      (event) => {
        this.#onPodEvent(event);
      },
    );
    this.#limitRanges = this.watchSelected(LIMIT_RANGES, {}, ({ object }) => {
      const { namespace } = nameOf(object);
      for (const pod of this.#pods?.cache.listNamespace(namespace) ?? []) this.#queuePod(pod);
    });
    // Until then a boost that is not in the catalog may just not have been read yet.
    void this.#boosts.synced.then(() => {
      this.#queueAll();
    });
    this.#sweep.start();
    this.#options.metrics.beforeText(() => {
      this.#measure();
    });
    return Promise.resolve();
  }

  /** Lets running work finish, then closes the watches. */
  override async close(): Promise<void> {
    this.#sweep.stop();
    await this.#queue.stop();
    await super.close();
  }

  #onBoostEvent({ type, object }: RawResourceEvent): void {
    const name = nameOf(object);
    const before = this.#catalog.get(name.namespace, name.name);
    switch (type) {
      case ResourceEventType.Added:
      case ResourceEventType.Modified:
        this.#catalog.upsert(object);
        break;
      case ResourceEventType.Deleted:
        this.#catalog.remove(object);
        break;
    }
    // A status of our own writing compiles to the boost that is there.
    if (this.#catalog.get(name.namespace, name.name) !== before) {
      for (const pod of this.#podsOf(name)) this.#queuePod(pod);
    }
    this.#queueStatus(name);
  }

  #onPodEvent({ type, object }: RawResourceEvent): void {
    const boost = readMetadata(object).labels?.get(BOOST_KEY);
    if (boost !== undefined)
      this.#queueStatus({ namespace: nameOf(object).namespace, name: boost });
    // A pod that left the watch may only have lost its label, unless we took that off.
    if (type === ResourceEventType.Deleted && this.#reverter.tookMarkerOff(object)) return;
    this.#queuePod(object);
  }

  #queuePod(pod: JsonObject): void {
    this.#queue.add(formatKey({ kind: 'Pod', ...nameOf(pod) }), 'critical');
  }

  /** The status of the boost that the pod's label names. */
  #queueStatusOf(pod: JsonObject): void {
    const { namespace = '', labels } = readMetadata(pod);
    const name = labels?.get(BOOST_KEY);
    if (name !== undefined) this.#queueStatus({ namespace, name });
  }

  #queueStatus(name: ObjectName): void {
    const due = this.clock.monotonic() + STATUS_DELAY_MS;
    this.#queue.addAt(formatKey({ kind: 'Boost', ...name }), due, 'normal');
  }

  #queueAll(): void {
    for (const pod of this.#pods?.cache.list() ?? []) this.#queuePod(pod);
  }

  async #reconcile(text: string): Promise<WorkResult> {
    const key = parseKey(text);
    if (key === undefined) return { kind: 'Done' };
    try {
      switch (key.kind) {
        case 'Pod':
          return await this.#reverter.reconcile(key);
        case 'Boost':
          await this.#statusWriter.reconcile(key);
          return { kind: 'Done' };
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

  /** Finds what no event and no timer has brought up; what it finds is counted, and then queued. */
  #lookAtAll(): void {
    const pods = this.#pods?.cache.list() ?? [];
    const overdue = pods.filter((pod) => this.#reverter.isDue(pod));
    if (overdue.length > 0) {
      this.#options.metrics.sweepFindings.inc(overdue.length);
      this.#options.logger.warn(
        { pods: overdue.slice(0, 10).map((pod) => formatName(nameOf(pod))), count: overdue.length },
        'the sweep found pods that were due',
      );
    }
    this.#queueAll();
    this.#directory.forgetUnnamed(pods);
  }

  #findBoost(name: ObjectName) {
    const object = this.#boosts?.cache.get(name.namespace, name.name);
    const compiled = this.#catalog.get(name.namespace, name.name);
    return object === undefined || compiled === undefined ? undefined : { object, compiled };
  }

  #podsOf({ namespace, name }: ObjectName): readonly JsonObject[] {
    const pods = this.#pods?.cache.listNamespace(namespace) ?? [];
    return pods.filter((pod) => readMetadata(pod).labels?.get(BOOST_KEY) === name);
  }

  /** The uid is the guard: a boost recreated under the name has a status of its own. */
  async #writeStatus(boost: JsonObject, status: BoostStatus): Promise<void> {
    const { uid } = readMetadata(boost);
    await this.client.patch(
      { ...STARTUP_CPU_BOOSTS, ...nameOf(boost), subresource: 'status' },
      { type: 'merge', body: { metadata: { uid }, status } },
    );
  }

  #measure(): void {
    const { metrics } = this.#options;
    metrics.queueDepth.set(this.#queue.depth().ready);
    metrics.boostConfigurations.reset();
    for (const boost of this.#boosts?.cache.list() ?? []) {
      metrics.boostConfigurations.inc({ namespace: nameOf(boost).namespace });
    }
    const watches = {
      startupcpuboosts: this.#boosts,
      pods: this.#pods,
      limitranges: this.#limitRanges,
    };
    for (const [resource, watch] of Object.entries(watches)) {
      const stats = watch?.stats();
      metrics.watchAgeSeconds.set({ resource }, (stats?.ageMs ?? 0) / 1_000);
      metrics.relists.set({ resource }, stats?.relists ?? 0);
    }
  }
}

function nameOf(object: JsonObject): ObjectName {
  const { namespace = '', name = '' } = readMetadata(object);
  return { namespace, name };
}

/** Managed fields are the larger half of a small pod, and nothing here reads them. */
function withoutManagedFields(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null) return object;
  return { ...object, metadata: { ...metadata, managedFields: undefined } };
}
