/** What the controller knows about the boost that a pod's label names. */
import { BOOST_KEY, readMetadata } from '../boost-engine';
import type { BoostKnowledge } from '../boost-engine';
import type { Clock } from '../kube';
import type { BoostCatalog } from '../resources';

export interface BoostDirectoryOptions {
  readonly catalog: BoostCatalog;
  /** Whether the catalog holds a complete list. */
  readonly isComplete: () => boolean;
  readonly clock: Clock;
}

export class BoostDirectory {
  readonly #options: BoostDirectoryOptions;
  /** Epoch milliseconds at which a boost was first found missing, by namespace and name. */
  readonly #missingSince = new Map<string, number>();

  constructor(options: BoostDirectoryOptions) {
    this.#options = options;
  }

  /** "The same boost" means the same namespace and name: recreating one changes nothing. */
  knowledgeFor(pod: unknown): BoostKnowledge {
    const { catalog, isComplete, clock } = this.#options;
    if (!isComplete()) return { kind: 'Unknown' };
    const { namespace = '', labels } = readMetadata(pod);
    const name = labels?.get(BOOST_KEY) ?? '';
    const key = `${namespace}/${name}`;
    const boost = catalog.get(namespace, name);
    if (boost !== undefined) {
      this.#missingSince.delete(key);
      return { kind: 'Present', boost };
    }
    const since = this.#missingSince.get(key) ?? clock.now();
    this.#missingSince.set(key, since);
    return { kind: 'Absent', since };
  }

  /** Forgets missing boosts that no pod names any more. */
  forgetUnnamed(pods: Iterable<unknown>): void {
    const named = new Set<string>();
    for (const pod of pods) {
      const { namespace = '', labels } = readMetadata(pod);
      named.add(`${namespace}/${labels?.get(BOOST_KEY) ?? ''}`);
    }
    for (const key of this.#missingSince.keys()) {
      if (!named.has(key)) this.#missingSince.delete(key);
    }
  }
}
