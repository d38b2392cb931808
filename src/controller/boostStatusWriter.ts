/** Keeps the status of each boost in step with the pods that carry it. */
import { isDeepStrictEqual } from 'node:util';
import { boostStatus, fieldsOf, readMetadata } from '../boost-engine';
import type { BoostStatus, BoostTally } from '../boost-engine';
import { STARTUP_CPU_BOOSTS } from '../kube';
import type { Clock, JsonObject, KubeClient } from '../kube';
import type { Metrics } from '../observability';
import type { ClusterView } from './clusterView';
import { formatName, nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import type { SelfCheck } from './selfCheck';
import type { StuckPods } from './stuckPods';
import type { WorkResult } from './workQueue';

export interface BoostStatusWriterOptions {
  readonly view: ClusterView;
  readonly stuckPods: StuckPods;
  readonly selfCheck: SelfCheck;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

export class BoostStatusWriter {
  readonly #options: BoostStatusWriterOptions;
  readonly #tallies = new Map<string, BoostTally>();

  constructor(options: BoostStatusWriterOptions) {
    this.#options = options;
  }

  /** Writes the status if it differs from the stored one; again when the self-check is too old. */
  async reconcile(name: ObjectName): Promise<WorkResult> {
    const { view, stuckPods, selfCheck, clock } = this.#options;
    const revertible = await selfCheck.revertibleIn(name.namespace);
    const found = view.boost(name);
    if (found === undefined) {
      this.#forget(name);
      return { kind: 'Done' };
    }
    const pods = view.podsOf(name);
    const previous = found.object.status;
    const before = this.#tallies.get(formatName(name));
    const { status, tally } = boostStatus({
      boost: found.compiled,
      pods,
      stuckPods: pods.filter((pod) => stuckPods.has(nameOf(pod))).length,
      surroundings: {
        ...view.webhooks.surroundings,
        ...(revertible === undefined ? {} : { revertible }),
      },
      previous,
      tally: before,
      now: clock.now(),
    });
    this.#tallies.set(formatName(name), tally);
    this.#measure(name, status, before);
    if (!isUpToDate(previous, status)) await this.#write(found.object, status);
    return { kind: 'RunAgainAfter', ms: selfCheck.countsFor(name.namespace) };
  }

  /** The uid is the guard: a boost recreated under the name has a status of its own. */
  async #write(boost: JsonObject, status: BoostStatus): Promise<void> {
    const { uid } = readMetadata(boost);
    await this.#options.client.patch(
      { ...STARTUP_CPU_BOOSTS, ...nameOf(boost), subresource: 'status' },
      { type: 'merge', body: { metadata: { uid }, status } },
    );
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
