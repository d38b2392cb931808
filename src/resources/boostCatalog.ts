/** The compiled boosts that are known, by namespace and name, each compiled once per generation. */

import { compileBoost, readMetadata } from '../boost-engine';
import type { CompiledBoost } from '../boost-engine';

export class BoostCatalog {
  readonly #namespaces = new Map<string, Map<string, CompiledBoost>>();

  /**
   * Takes a stored StartupCPUBoost as plain JSON; never throws. A state with the uid and generation
   * that are known already changes nothing, and `get` goes on answering the same object.
   */
  upsert(object: unknown): void {
    const { namespace = '', name = '', uid, generation } = readMetadata(object);
    const known = this.get(namespace, name);
    const isKnown =
      uid !== undefined &&
      generation !== undefined &&
      known?.uid === uid &&
      known.generation === generation;
    if (isKnown) return;
    const boosts = this.#namespaces.get(namespace) ?? new Map<string, CompiledBoost>();
    boosts.set(name, compileBoost(object));
    this.#namespaces.set(namespace, boosts);
  }

  /** Takes any last state of the boost; one that was recreated under the same name since stays. */
  remove(object: unknown): void {
    const { namespace = '', name = '', uid } = readMetadata(object);
    const known = this.get(namespace, name);
    if (known === undefined || (uid !== undefined && known.uid !== uid)) return;
    const boosts = this.#namespaces.get(namespace);
    boosts?.delete(name);
    if (boosts?.size === 0) this.#namespaces.delete(namespace);
  }

  list(namespace: string): Iterable<CompiledBoost> {
    return this.#namespaces.get(namespace)?.values() ?? [];
  }

  get(namespace: string, name: string): CompiledBoost | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }
}
