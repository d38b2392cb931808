/** Keeps the compiled boosts of all namespaces at hand, so that a review costs no call. */
import { ResourceEventType } from '@dot-i/k8s-operator';
import type { CompiledBoost } from '../boost-engine';
import { ResilientOperator, STARTUP_CPU_BOOSTS } from '../kube';
import type { ResourceWatch } from '../kube';
import { BoostCatalog } from '../resources';

export class BoostWatcher extends ResilientOperator {
  readonly #catalog = new BoostCatalog();
  #watch: ResourceWatch | undefined;

  list(namespace: string): Iterable<CompiledBoost> {
    return this.#catalog.list(namespace);
  }

  /** Undefined once the boosts were read completely; an API server that is away later changes nothing. */
  problem(): string | undefined {
    return this.#watch?.isSynced === true ? undefined : 'the boosts have not been read yet';
  }

  protected override init(): Promise<void> {
    this.#watch = this.watchSelected(STARTUP_CPU_BOOSTS, {}, ({ type, object }) => {
      if (type === ResourceEventType.Deleted) this.#catalog.remove(object);
      else this.#catalog.upsert(object);
    });
    return Promise.resolve();
  }
}
