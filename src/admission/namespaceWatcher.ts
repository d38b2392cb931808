/** Keeps at hand what a review depends on besides the pod, so that a review costs no call. */
import { ResourceEventType } from '@dot-i/k8s-operator';
import { isRevertible, readMetadata } from '../boost-engine';
import type { BoostInput, CompiledBoost, WayBack } from '../boost-engine';
import { LIMIT_RANGES, RESOURCE_QUOTAS, ResilientOperator, STARTUP_CPU_BOOSTS } from '../kube';
import type { JsonObject, ResilientOperatorOptions, ResourceRef, ResourceWatch } from '../kube';
import type { HealthCheck } from '../observability';
import { BoostCatalog } from '../resources';
import type { ControllerLease } from './controllerLease';

/** What the settings say where a boost does not; the defaults of the engine where left out. */
export type BoostDefaults = Pick<BoostInput, 'preemption' | 'cpuLimits' | 'guaranteed'>;

/** What a namespace says about the CPU of its pods, and the settings do for all namespaces. */
export interface NamespaceView extends BoostDefaults {
  readonly boosts: Iterable<CompiledBoost>;
  readonly limitRanges: readonly JsonObject[];
  readonly quotas: readonly JsonObject[];
  /** Taken to be there where left out. */
  readonly wayBack?: WayBack;
}

export interface NamespaceWatcherOptions extends ResilientOperatorOptions {
  /** Left out where nobody looks whether there is a controller. */
  readonly controllerLease?: Pick<ControllerLease, 'controller'>;
  readonly defaults?: BoostDefaults;
}

export interface NamespaceSource {
  view(namespace: string): NamespaceView;
  /** Undefined once everything has been read; else what has not. */
  problem(): string | undefined;
  /** Whether the reading goes on. */
  readonly liveChecks: readonly HealthCheck[];
}

export class NamespaceWatcher extends ResilientOperator implements NamespaceSource {
  readonly #defaults: BoostDefaults;
  readonly #catalog = new BoostCatalog();
  readonly #controllerLease: NamespaceWatcherOptions['controllerLease'];
  #boosts: ResourceWatch | undefined;
  #limitRanges: ResourceWatch | undefined;
  #quotas: ResourceWatch | undefined;

  constructor(options: NamespaceWatcherOptions) {
    super(options);
    this.#controllerLease = options.controllerLease;
    this.#defaults = options.defaults ?? {};
  }

  view(namespace: string): NamespaceView {
    return {
      ...this.#defaults,
      boosts: this.#catalog.list(namespace),
      limitRanges: this.#limitRanges?.cache.listNamespace(namespace) ?? [],
      quotas: this.#quotas?.cache.listNamespace(namespace) ?? [],
      wayBack: {
        controller: this.#controllerLease?.controller ?? 'Acting',
        notRevertible: this.#notRevertible(namespace),
      },
    };
  }

  /** Read from the stored objects: a new status compiles no boost anew. */
  #notRevertible(namespace: string): ReadonlySet<string> {
    const boosts = this.#boosts?.cache.listNamespace(namespace) ?? [];
    return new Set(
      boosts.filter((boost) => !isRevertible(boost)).map((boost) => readMetadata(boost).name ?? ''),
    );
  }

  /** An API server that is away later changes nothing: it would take every replica at one moment. */
  problem(): string | undefined {
    if (this.watches.length > 0 && this.watches.every((watch) => watch.isSynced)) return undefined;
    return 'boosts, LimitRanges and ResourceQuotas have not all been read yet';
  }

  protected override init(): Promise<void> {
    this.#boosts = this.watchSelected(STARTUP_CPU_BOOSTS, {}, ({ type, object }) => {
      if (type === ResourceEventType.Deleted) this.#catalog.remove(object);
      else this.#catalog.upsert(object);
    });
    this.#limitRanges = this.#keep(LIMIT_RANGES);
    this.#quotas = this.#keep(RESOURCE_QUOTAS);
    return Promise.resolve();
  }

  /** A watch that is read from its cache alone. */
  #keep(resource: ResourceRef): ResourceWatch {
    return this.watchSelected(resource, {}, () => undefined);
  }
}
