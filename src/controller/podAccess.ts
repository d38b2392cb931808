/** How the reconcilers of pods read one, name one, and ask to look at it again. */
import { PODS, ifThere } from '../kube';
import type { JsonObject, KubeClient, ObjectRef } from '../kube';
import type { ObjectName } from './reconcileKey';
import type { WorkResult } from './workQueue';

/** Where a pod was read: a watched one is brought up by its events, another has to be asked for. */
export type PodSource = 'Watched' | 'Unwatched';

/**
 * A pod that lost its label is in no watch, so it is looked at again by asking for it, until its
 * record is gone. A kubelet takes one to three seconds to confirm a resize.
 */
export const UNWATCHED_RETRY_MS = 1_000;

/**
 * How soon a refused call is tried again. What refuses it (a quota, another webhook, a missing
 * permission) is mended by people, in minutes.
 */
export const REFUSED_RETRY_MS = 60_000;

export function podRef({ namespace, name }: ObjectName): ObjectRef {
  return { ...PODS, namespace, name };
}

/** The pod as it is stored; undefined where there is none. */
export function fetchPod(client: KubeClient, name: ObjectName): Promise<JsonObject | undefined> {
  return ifThere(client.get(podRef(name)));
}

/** Again at `until` at the latest, both in epoch milliseconds. */
export function again(source: PodSource, until = Infinity, now = 0): WorkResult {
  const ms = source === 'Watched' ? until - now : Math.min(until - now, UNWATCHED_RETRY_MS);
  return ms === Infinity ? { kind: 'Done' } : { kind: 'RunAgainAfter', ms };
}

/** Once the pod changes; of an unwatched one no event tells, and many of them must not keep others waiting. */
export function againOnChange(source: PodSource): WorkResult {
  return source === 'Watched' ? { kind: 'Done' } : { kind: 'RunAgainAfter', ms: REFUSED_RETRY_MS };
}
