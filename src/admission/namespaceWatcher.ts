/** Keeps at hand what a review depends on besides the pod, so that a review costs no call. */
import { ResourceEventType } from '@dot-i/k8s-operator';
import type { CompiledBoost } from '../boost-engine';
import { LIMIT_RANGES, RESOURCE_QUOTAS, ResilientOperator, STARTUP_CPU_BOOSTS } from '../kube';
import type { JsonObject, ResilientOperatorOptions, ResourceRef, ResourceWatch } from '../kube';
import { BoostCatalog } from '../resources';

/** What a namespace says about the CPU of its pods, and the settings do for all namespaces. */
export interface NamespaceView {
  readonly boosts: Iterable<CompiledBoost>;
  readonly limitRanges: readonly JsonObject[];
  readonly quotas: readonly JsonObject[];
  readonly preemption?: 'Avoid' | 'Accept';
}

export interface NamespaceWatcherOptions extends ResilientOperatorOptions {
  /** Whether pods that could push others off their node are boosted at creation; `Avoid` unless given. */
  readonly preemption?: 'Avoid' | 'Accept';
}

export interface NamespaceSource {
  view(namespace: string): NamespaceView;
  /** Undefined once everything has been read; else what has not. */
  problem(): string | undefined;
}

export class NamespaceWatcher extends ResilientOperator implements NamespaceSource {
  readonly #preemption: 'Avoid' | 'Accept';
  readonly #catalog = new BoostCatalog();
  #limitRanges: ResourceWatch | undefined;
  #quotas: ResourceWatch | undefined;

  constructor(options: NamespaceWatcherOptions) {
    super(options);
    this.#preemption = options.preemption ?? 'Avoid';
  }

  view(namespace: string): NamespaceView {
    return {
      preemption: this.#preemption,
      boosts: this.#catalog.list(namespace),
      limitRanges: this.#limitRanges?.cache.listNamespace(namespace) ?? [],
      quotas: this.#quotas?.cache.listNamespace(namespace) ?? [],
    };
  }

  /** An API server that is away later changes nothing: it would take every replica at one moment. */
  problem(): string | undefined {
    if (this.watches.length > 0 && this.watches.every((watch) => watch.isSynced)) return undefined;
    return 'boosts, LimitRanges and ResourceQuotas have not all been read yet';
  }

  protected override init(): Promise<void> {
    this.watchSelected(STARTUP_CPU_BOOSTS, {}, ({ type, object }) => {
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
