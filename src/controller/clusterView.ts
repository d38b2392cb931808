/** Gathers: what the watches have delivered, as the reconcilers ask for it. */
import { BOOST_KEY, isRevertible, readMetadata } from '../boost-engine';
import type { CompiledBoost } from '../boost-engine';
import type { JsonObject, ResourceWatch } from '../kube';
import type { BoostCatalog } from '../resources';
import type { PodWebhooks } from './podWebhooks';
import { nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

export interface KnownBoost {
  readonly object: JsonObject;
  readonly compiled: CompiledBoost;
}

export interface ClusterWatches {
  readonly boosts: ResourceWatch;
  /** The pods that carry our label. */
  readonly pods: ResourceWatch;
  readonly limitRanges: ResourceWatch;
  /** The pods without our label whose containers have not all started yet. */
  readonly startingPods: ResourceWatch;
  readonly quotas: ResourceWatch;
}

export class ClusterView {
  /** Whatever has to be there before anything is judged. */
  readonly watches: ClusterWatches;
  /** Good to know: a controller that may not read them does its work all the same. */
  readonly webhooks: PodWebhooks;
  readonly #catalog: BoostCatalog;

  constructor(watches: ClusterWatches, webhooks: PodWebhooks, catalog: BoostCatalog) {
    this.watches = watches;
    this.webhooks = webhooks;
    this.#catalog = catalog;
  }

  /** Whether a boost or a LimitRange that is not here is not there. */
  get isComplete(): boolean {
    return this.watches.boosts.isSynced && this.watches.limitRanges.isSynced;
  }

  /** Whether a rule that would speak against a raise is here if there is one. */
  get isCompleteForRaises(): boolean {
    return this.isComplete && this.watches.quotas.isSynced;
  }

  get pods(): readonly JsonObject[] {
    return this.watches.pods.cache.list();
  }

  get boosts(): readonly JsonObject[] {
    return this.watches.boosts.cache.list();
  }

  pod({ namespace, name }: ObjectName): JsonObject | undefined {
    return this.watches.pods.cache.get(namespace, name);
  }

  startingPod({ namespace, name }: ObjectName): JsonObject | undefined {
    return this.watches.startingPods.cache.get(namespace, name);
  }

  get startingPods(): readonly JsonObject[] {
    return this.watches.startingPods.cache.list();
  }

  startingPodsIn(namespace: string): readonly JsonObject[] {
    return this.watches.startingPods.cache.listNamespace(namespace);
  }

  podsIn(namespace: string): readonly JsonObject[] {
    return this.watches.pods.cache.listNamespace(namespace);
  }

  /** The pods whose label names the boost. */
  podsOf({ namespace, name }: ObjectName): readonly JsonObject[] {
    return this.podsIn(namespace).filter((pod) => boostNameOf(pod)?.name === name);
  }

  boost(name: ObjectName): KnownBoost | undefined {
    const object = this.watches.boosts.cache.get(name.namespace, name.name);
    const compiled = this.#catalog.get(name.namespace, name.name);
    return object === undefined || compiled === undefined ? undefined : { object, compiled };
  }

  boostsIn(namespace: string): Iterable<CompiledBoost> {
    return this.#catalog.list(namespace);
  }

  /** Names of the boosts that could not be taken back, as their status says. */
  notRevertibleIn(namespace: string): ReadonlySet<string> {
    const boosts = this.watches.boosts.cache.listNamespace(namespace);
    return new Set(
      boosts.filter((boost) => !isRevertible(boost)).map((boost) => nameOf(boost).name),
    );
  }

  quotasIn(namespace: string): readonly JsonObject[] {
    return this.watches.quotas.cache.listNamespace(namespace);
  }

  limitRangesIn(namespace: string): readonly JsonObject[] {
    return this.watches.limitRanges.cache.listNamespace(namespace);
  }
}

/** The boost that a pod's label names, whether it is there or not. */
export function boostNameOf(pod: JsonObject): ObjectName | undefined {
  const name = readMetadata(pod).labels?.get(BOOST_KEY);
  return name === undefined ? undefined : { namespace: nameOf(pod).namespace, name };
}
