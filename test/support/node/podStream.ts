/** Pods that are created all the time, each watched from its creation to the end of its boost. */
import { setTimeout as delay } from 'node:timers/promises';
import { BOOST_KEY, parseRecord } from '../../../src/boost-engine';
import { ApiError, PODS } from '../../../src/kube';
import type { JsonObject } from '../../../src/kube';
import { aContainer, aPod } from '../builders';
import { NODE_PATIENCE_MS } from './cluster';
import type { NodeCluster } from './cluster';
import { isMarked, parsePod, resourcesOf, statusOf } from './startingPod';
import type { StoredPod } from './startingPod';

/**
 * What became of one pod. `Evicted`: by a drain, before it could be caught up. `Missed` and `Kept` are
 * what must not be.
 */
export type PodEnd =
  | { readonly kind: 'AtAdmission' | 'CaughtUp' | 'Evicted' }
  | { readonly kind: 'Missed' | 'Kept' | 'Restarted'; readonly pod: StoredPod };

/** A new leader has to be there, and to look, before a pod is ready: so long a pod starts at least. */
const STARTS_FOR_SECONDS = 10;
/** Two cores run the nodes, the API server and all pods: more at a time would starve what is tested. */
const PAUSE_MS = 700;
const LOOK_MS = 500;

const RESOURCES = { requests: { cpu: '10m' }, limits: { cpu: '100m' } };

export class PodStream {
  readonly #cluster: NodeCluster;
  readonly #namespace: string;
  readonly #ends: Promise<PodEnd>[] = [];
  readonly #creating: Promise<void>;
  #isOver = false;

  constructor(cluster: NodeCluster, namespace: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#creating = this.#createAll();
  }

  /** No pod is created from now on; resolves when each has come to its end. */
  async end(): Promise<readonly PodEnd[]> {
    this.#isOver = true;
    await this.#creating;
    return Promise.all(this.#ends);
  }

  async #createAll(): Promise<void> {
    for (let i = 1; !this.#isOver; i++) {
      const end = this.#live(`pod-${i}`);
      // It is awaited at the end of the stream; until then nobody hears of a rejection.
      end.catch(() => undefined);
      this.#ends.push(end);
      await delay(PAUSE_MS);
    }
  }

  async #live(name: string): Promise<PodEnd> {
    const pods = { ...PODS, namespace: this.#namespace };
    const created = parsePod(
      await this.#cluster.client.create(pods, slowPod(this.#namespace, name)),
    );
    const giveUpAt = Date.now() + NODE_PATIENCE_MS;
    let last = created;
    let boost = boostOf(created);
    for (;;) {
      const stored = await this.#stored(name);
      if (stored === undefined) return { kind: boost ?? 'Evicted' };
      last = stored;
      boost ??= boostOf(last);
      const isOver = boost !== undefined && !isMarked(last);
      if (isOver || isReadyWithout(boost, last) || Date.now() > giveUpAt) break;
      await delay(LOOK_MS);
    }
    await this.#cluster.client.delete({ ...pods, name }, { gracePeriodSeconds: 0 });
    return endOf(last, boost);
  }

  async #stored(name: string): Promise<StoredPod | undefined> {
    try {
      const ref = { ...PODS, namespace: this.#namespace, name };
      return parsePod(await this.#cluster.client.get(ref));
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'NotFound') return undefined;
      throw error;
    }
  }
}

/** How many came to each end, for a person. */
export function countsOf(ends: readonly PodEnd[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind } of ends) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** The pods for which a promise was not kept. */
export function brokenPromises(ends: readonly PodEnd[]): readonly PodEnd[] {
  return ends.filter((end) => 'pod' in end);
}

type Boosted = 'AtAdmission' | 'CaughtUp';

function boostOf({ metadata }: StoredPod): Boosted | undefined {
  const text = metadata.annotations[BOOST_KEY];
  if (text === undefined) return undefined;
  const parsed = parseRecord(text);
  if (parsed.kind === 'Unreadable') throw new Error(parsed.why);
  return parsed.record.reason === 'CatchUp' ? 'CaughtUp' : 'AtAdmission';
}

function isReadyWithout(boost: Boosted | undefined, { status }: StoredPod): boolean {
  return (
    boost === undefined &&
    status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')
  );
}

function endOf(pod: StoredPod, boost: Boosted | undefined): PodEnd {
  if (boost === undefined) return { kind: 'Missed', pod };
  const { requests, limits } = resourcesOf(pod) ?? {};
  const isBack = requests?.cpu === RESOURCES.requests.cpu && limits?.cpu === RESOURCES.limits.cpu;
  if (isMarked(pod) || !isBack) return { kind: 'Kept', pod };
  return statusOf(pod)?.restartCount === 0 ? { kind: boost } : { kind: 'Restarted', pod };
}

/** Ready by itself, with one run of a probe: many of them would cost more than the pods. */
function slowPod(namespace: string, name: string): JsonObject {
  const readinessProbe = {
    exec: { command: ['true'] },
    initialDelaySeconds: STARTS_FOR_SECONDS,
    periodSeconds: STARTS_FOR_SECONDS,
  };
  const container = aContainer({ image: 'local/busybox:1', resources: RESOURCES, readinessProbe });
  return aPod({ name, namespace, containers: [container] });
}
