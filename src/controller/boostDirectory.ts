/** What the controller knows about the boost that a pod's label names. */
import type { BoostKnowledge } from '../boost-engine';
import type { Clock, JsonObject } from '../kube';
import { boostNameOf } from './clusterView';
import type { ClusterView } from './clusterView';
import { formatName, nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

export class BoostDirectory {
  readonly #view: ClusterView;
  readonly #clock: Clock;
  /** Epoch milliseconds at which a boost was first found missing, by namespace and name. */
  readonly #missingSince = new Map<string, number>();

  constructor(view: ClusterView, clock: Clock) {
    this.#view = view;
    this.#clock = clock;
  }

  /** "The same boost" means the same namespace and name: recreating one changes nothing. */
  knowledgeFor(pod: JsonObject): BoostKnowledge {
    if (!this.#view.isComplete) return { kind: 'Unknown' };
    const name = namedBy(pod);
    const boost = this.#view.boost(name)?.compiled;
    if (boost !== undefined) {
      this.#missingSince.delete(formatName(name));
      return { kind: 'Present', boost };
    }
    const since = this.#missingSince.get(formatName(name)) ?? this.#clock.now();
    this.#missingSince.set(formatName(name), since);
    return { kind: 'Absent', since };
  }

  /** Forgets missing boosts that no pod names any more. */
  forgetUnnamed(): void {
    const named = new Set(this.#view.pods.map((pod) => formatName(namedBy(pod))));
    for (const key of this.#missingSince.keys()) {
      if (!named.has(key)) this.#missingSince.delete(key);
    }
  }
}

/** A pod that lost its label names no boost, and none has an empty name. */
function namedBy(pod: JsonObject): ObjectName {
  return boostNameOf(pod) ?? { namespace: nameOf(pod).namespace, name: '' };
}
