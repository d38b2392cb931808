/** What keeps a whole pod from being boosted, as an ordered list of small checks. */
import { MIRROR_POD_KEY } from './keys';
import type { PodFacts } from './pod';
import { qosClassOf } from './qosClass';
import type { PodSkipCode } from './reasons';

/**
 * The QoS class of the whole pod is judged again for each container, so the work grows with the
 * square of their number: 3 MiB, the largest object, hold tens of thousands, and while one pod is
 * judged no other is. No kubelet runs a pod near this size.
 */
export const MAX_CONTAINERS = 200;

interface PodCheck {
  readonly code: PodSkipCode;
  /** True means that the pod is left as it was. */
  readonly applies: (pod: PodFacts) => boolean;
}

/** The first check that applies gives the reason; the order is from what a pod is to what it asks for. */
export const POD_CHECKS: readonly PodCheck[] = [
  { code: 'MalformedPod', applies: (pod) => !hasDistinctNames(pod) },
  // validation.ValidatePodResize: "static pods cannot be resized".
  { code: 'StaticPod', applies: (pod) => pod.annotations?.has(MIRROR_POD_KEY) ?? false },
  // validation.ValidatePodResize: "windows pods cannot be resized".
  { code: 'WindowsPod', applies: (pod) => pod.isWindows },
  // The kubelet fails a pod that does not fit (OutOfcpu), where the scheduler would let it wait.
  { code: 'NodeNameSet', applies: (pod) => pod.nodeName !== undefined },
  // The sum of the containers may not exceed the pod's own request and limit.
  { code: 'PodLevelResources', applies: (pod) => pod.hasPodLevelResources },
  // Up to 1.36 the API server refuses every resize of a pod with resources.claims.
  { code: 'ResourceClaims', applies: (pod) => pod.hasResourceClaims },
];

/**
 * The checks of a pod that is stored. Its nodeName says nothing here: who set it, the scheduler or the
 * manifest, cannot be told any more, and need not be once the kubelet has admitted the pod.
 */
export const STORED_POD_CHECKS: readonly PodCheck[] = [
  {
    code: 'TooManyContainers',
    applies: (pod) => pod.containers.length + pod.initContainers.length > MAX_CONTAINERS,
  },
  ...POD_CHECKS.filter(({ code }) => code !== 'NodeNameSet'),
  { code: 'SystemCritical', applies: isSystemCritical },
];

/** scheduling.SystemCriticalPriority: for such a pod the kubelet evicts others to make room. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

export function isSystemCritical(pod: PodFacts): boolean {
  return (pod.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
}

/**
 * Whether Guaranteed pods are boosted. The kubelet refuses to resize one where its node has the CPU
 * Manager's policy `static`, for good, and nobody knows the node when a pod is created:
 * pkg/kubelet/allocation/handlers.go.
 */
export type GuaranteedPods = 'Boost' | 'Leave';

export function isLeftAsGuaranteed(pod: PodFacts, guaranteed: GuaranteedPods | undefined): boolean {
  if (guaranteed !== 'Leave') return false;
  return qosClassOf([...pod.containers, ...pod.initContainers]) === 'Guaranteed';
}

/** Whether the scheduler may remove running pods for it: a larger request could cost others their place. */
export function mightPreempt(pod: PodFacts): boolean {
  return (pod.priority ?? 0) > 0 && pod.preemptionPolicy !== 'Never';
}

function hasDistinctNames(pod: PodFacts): boolean {
  const names = new Set(pod.containers.map((container) => container.name));
  return names.size === pod.containers.length && !names.has('');
}
