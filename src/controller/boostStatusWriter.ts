/** Keeps the status of each boost in step with the pods that carry it. */
import { isDeepStrictEqual } from 'node:util';
import { boostStatus, fieldsOf } from '../boost-engine';
import type { BoostStatus, BoostTally, CompiledBoost } from '../boost-engine';
import type { Clock, JsonObject } from '../kube';
import type { Metrics } from '../observability';
import { formatName } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

export interface BoostStatusWriterOptions {
  /** The boost as the watch last delivered it, and compiled; undefined where there is none. */
  readonly boost: (
    name: ObjectName,
  ) => { readonly object: JsonObject; readonly compiled: CompiledBoost } | undefined;
  /** The pods that carry the boost's label. */
  readonly podsOf: (name: ObjectName) => readonly JsonObject[];
  readonly isStuck: (pod: JsonObject) => boolean;
  /** Writes the status subresource; throws where that fails. */
  readonly write: (boost: JsonObject, status: BoostStatus) => Promise<void>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

export class BoostStatusWriter {
  readonly #options: BoostStatusWriterOptions;
  readonly #tallies = new Map<string, BoostTally>();

  constructor(options: BoostStatusWriterOptions) {
    this.#options = options;
  }

  /** Writes the status if it differs from the stored one. */
  async reconcile(name: ObjectName): Promise<void> {
    const { boost, podsOf, isStuck, write, clock } = this.#options;
    const found = boost(name);
    if (found === undefined) {
      this.#forget(name);
      return;
    }
    const pods = podsOf(name);
    const previous = found.object.status;
    const before = this.#tallies.get(formatName(name));
    const { status, tally } = boostStatus({
      boost: found.compiled,
      pods,
      stuckPods: pods.filter(isStuck).length,
      previous,
      tally: before,
      now: clock.now(),
    });
    this.#tallies.set(formatName(name), tally);
    this.#measure(name, status, before);
    if (!isUpToDate(previous, status)) await write(found.object, status);
  }

  #measure(name: ObjectName, status: BoostStatus, before: BoostTally | undefined): void {
    const { boostContainersActive, boostContainersTotal } = this.#options.metrics;
    const labels = { namespace: name.namespace, boost: name.name };
    boostContainersActive.set(labels, status.activeContainerBoosts);
    boostContainersTotal.inc(labels, status.totalContainerBoosts - (before?.totalContainers ?? 0));
  }

  #forget(name: ObjectName): void {
    const { boostContainersActive, boostContainersTotal } = this.#options.metrics;
    const labels = { namespace: name.namespace, boost: name.name };
    this.#tallies.delete(formatName(name));
    boostContainersActive.remove(labels);
    boostContainersTotal.remove(labels);
  }
}

/** Fields that others keep in the status do not count. */
function isUpToDate(stored: unknown, status: BoostStatus): boolean {
  const fields = fieldsOf(stored);
  return Object.entries(status).every(([key, value]) => isDeepStrictEqual(fields.get(key), value));
}
