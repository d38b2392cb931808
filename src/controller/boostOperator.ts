/** The operator on the SDK: watches boosts and the pods that carry one, and says what to look at. */
import { isDeepStrictEqual } from 'node:util';
import { ResourceEventType } from '@dot-i/k8s-operator';
import { BOOST_KEY, isRevertible, readMetadata } from '../boost-engine';
import {
  LIMIT_RANGES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  RESOURCE_QUOTAS,
  ResilientOperator,
  STARTUP_CPU_BOOSTS,
} from '../kube';
import type {
  JsonObject,
  RawResourceEvent,
  ResilientOperatorOptions,
  ResourceWatch,
} from '../kube';
import type { HealthCheck, Logger, Metrics } from '../observability';
import { BoostCatalog } from '../resources';
import { ClusterView } from './clusterView';
import { judgedPartOf } from './judgedPart';
import { PodWebhooks } from './podWebhooks';
import { nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import { ReconcileLoop } from './reconcileLoop';
import type { ReconcileSettings } from './reconcileLoop';

export interface BoostOperatorOptions extends ResilientOperatorOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly settings: ReconcileSettings & {
    /** Name of our MutatingWebhookConfiguration. */
    readonly webhookConfiguration: string;
  };
  /** Whether pods may be raised in place at this very moment; always unless given. */
  readonly mayRaise?: () => boolean;
}

/**
 * Watches from `start` to `close`, so that its caches are warm; acts only from `act` to `rest`, the
 * time of its leadership.
 */
export class BoostOperator extends ResilientOperator {
  readonly #options: BoostOperatorOptions;
  readonly #catalog = new BoostCatalog();
  #view: ClusterView | undefined;
  #loop: ReconcileLoop | undefined;
  /** As last seen. */
  #webhooks: PodWebhooks['surroundings'] = {};
  /** Uids of boosts that raise nothing, since it could not be taken back. */
  readonly #notRevertible = new Set<string>();

  constructor(options: BoostOperatorOptions) {
    super(options);
    this.#options = options;
  }

  /**
   * Ready as soon as the caches that a revert needs were filled once; an API server that is away later
   * changes nothing, and raises wait for the other caches by themselves.
   */
  get checks(): readonly HealthCheck[] {
    return (['boosts', 'pods', 'limitRanges'] as const).map((name) => ({
      name,
      problem: () =>
        this.#view?.watches[name].isSynced === true ? undefined : 'the first list is not complete',
    }));
  }

  override get liveChecks(): readonly HealthCheck[] {
    const work = { name: 'work', problem: () => this.#loop?.liveCheck.problem() };
    return [...super.liveChecks, work];
  }

  /** Resolves when the caches that a revert needs have been filled for the first time. */
  get synced(): Promise<unknown> {
    if (this.#view === undefined) return Promise.resolve();
    const { boosts, pods, limitRanges } = this.#view.watches;
    return Promise.all([boosts.synced, pods.synced, limitRanges.synced]);
  }

  /**
   * Takes over: judges every marked pod, then whatever changes. The streams are opened anew: the one
   * that led before may have lost the Lease for the very network that has made ours silent.
   *
   * @param mayAct whether this process may act at this very moment
   */
  act(mayAct: () => boolean): void {
    const view = this.#view;
    if (view === undefined || this.#loop !== undefined) return;
    this.reopenWatches();
    const { mayRaise = () => true, random = Math.random } = this.#options;
    const raising = () => (mayRaise() ? view.webhooks.raising : 'Off');
    this.#loop = new ReconcileLoop({ ...this.#options, view, mayAct, raising, random });
    this.#loop.start();
  }

  /** Brings at once what silent connections have swallowed. */
  reopenWatches(): void {
    for (const watch of this.watches) watch.reopen();
  }

  /** Resolves when nothing is being done any more; the caches stay warm. */
  async rest(): Promise<void> {
    const loop = this.#loop;
    this.#loop = undefined;
    await loop?.stop();
  }

  override async close(): Promise<void> {
    await this.rest();
    await super.close();
  }

  protected override init(): Promise<void> {
    const view = new ClusterView(
      {
        boosts: this.watchSelected(STARTUP_CPU_BOOSTS, {}, (event) => {
          this.#onBoostEvent(event);
        }),
        pods: this.watchSelected(
          PODS,
          { labelSelector: BOOST_KEY, transform: withoutManagedFields },
          (event) => {
            this.#onPodEvent(event);
          },
        ),
        limitRanges: this.watchSelected(LIMIT_RANGES, {}, (event) => {
          this.#onConstraintEvent(event);
        }),
        startingPods: this.watchSelected(
          PODS,
          {
            labelSelector: `!${BOOST_KEY}`,
            fieldSelector: 'status.phase=Pending',
            transform: judgedPartOf,
          },
          (event) => {
            this.#onStartingPodEvent(event);
          },
        ),
        quotas: this.watchSelected(RESOURCE_QUOTAS, {}, (event) => {
          this.#onConstraintEvent(event);
        }),
      },
      new PodWebhooks(
        this.watchSelected(
          MUTATING_WEBHOOK_CONFIGURATIONS,
          { transform: withoutManagedFields },
          () => {
            this.#onWebhookEvent();
          },
        ),
        this.#options.settings.webhookConfiguration,
      ),
      this.#catalog,
    );
    this.#view = view;
    // Until then a boost that is not in the catalog may just not have been read yet.
    const { boosts, limitRanges, quotas } = view.watches;
    for (const others of [[], [quotas.synced]]) {
      const known = Promise.all([boosts.synced, limitRanges.synced, ...others]);
      void known.then(() => this.#loop?.queueAll());
    }
    void view.webhooks.watch.synced.then(() => {
      this.#onWebhookEvent();
    });
    this.#options.metrics.beforeText(() => {
      this.#measure(view);
    });
    return Promise.resolve();
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
    const isChanged = this.#catalog.get(name.namespace, name.name) !== before;
    // A status of our own writing compiles to the boost that is there.
    if (this.#noteRevertible(object, type) || isChanged) this.#queuePodsOf(name);
    this.#loop?.queueStatus(name);
  }

  /** The pods that carry the boost, and those that may have missed it. */
  #queuePodsOf(boost: ObjectName): void {
    for (const pod of this.#view?.podsOf(boost) ?? []) this.#loop?.queuePod(pod);
    this.#loop?.queueStartingPods(boost.namespace);
    this.#loop?.queueMissedPods(boost);
  }

  /** True if the boost could not be taken back before, and now it can. */
  #noteRevertible(boost: JsonObject, type: ResourceEventType): boolean {
    const { uid = '' } = readMetadata(boost);
    if (type === ResourceEventType.Deleted || isRevertible(boost)) {
      return this.#notRevertible.delete(uid);
    }
    this.#notRevertible.add(uid);
    return false;
  }

  #onPodEvent({ type, object }: RawResourceEvent): void {
    this.#loop?.queueStatusOf(object);
    if (type === ResourceEventType.Deleted) this.#loop?.queueGonePod(object);
    else this.#loop?.queuePod(object);
  }

  /** Where no boost is, none can be missed. */
  #onStartingPodEvent({ type, object }: RawResourceEvent): void {
    const { namespace } = nameOf(object);
    if ([...this.#catalog.list(namespace)].length === 0) return;
    if (type === ResourceEventType.Deleted) this.#loop?.queueStartedPod(object);
    else this.#loop?.queueRaise(nameOf(object));
  }

  /** A revert may have waited for a LimitRange to go, a raise for a quota. */
  #onConstraintEvent({ object }: RawResourceEvent): void {
    const { namespace } = nameOf(object);
    for (const pod of this.#view?.podsIn(namespace) ?? []) this.#loop?.queuePod(pod);
    this.#loop?.queueStartingPods(namespace);
  }

  /** Most changes are renewed certificates, of ours or of others. */
  #onWebhookEvent(): void {
    const surroundings = this.#view?.webhooks.surroundings ?? {};
    const before = this.#webhooks;
    this.#webhooks = surroundings;
    if (isDeepStrictEqual(surroundings, before)) return;
    const { logger } = this.#options;
    const { conflictingWebhooks = [], webhook } = surroundings;
    if (!isDeepStrictEqual(conflictingWebhooks, before.conflictingWebhooks ?? [])) {
      logger.warn({ configurations: conflictingWebhooks }, 'other webhooks that boost pods, too');
    }
    if (webhook === 'Stopped') {
      logger.warn({}, 'stopped by revert-all: nothing is boosted until revert-all --undo');
    }
    // What was stopped may have missed pods that are still starting.
    this.#loop?.queueAll();
  }

  #measure(view: ClusterView): void {
    const { metrics } = this.#options;
    metrics.queueDepth.set(this.#loop?.backlog ?? 0);
    metrics.boostConfigurations.reset();
    for (const boost of view.boosts) {
      metrics.boostConfigurations.inc({ namespace: nameOf(boost).namespace });
    }
    const watches: Readonly<Record<string, ResourceWatch>> = {
      ...view.watches,
      webhookConfigurations: view.webhooks.watch,
    };
    for (const [resource, watch] of Object.entries(watches)) {
      const { ageMs, relists } = watch.stats();
      metrics.watchAgeSeconds.set({ resource: resource.toLowerCase() }, ageMs / 1_000);
      metrics.relists.set({ resource: resource.toLowerCase() }, relists);
    }
  }
}

/** Managed fields are the larger half of a small pod, and nothing here reads them. */
function withoutManagedFields(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null) return object;
  return { ...object, metadata: { ...metadata, managedFields: undefined } };
}
