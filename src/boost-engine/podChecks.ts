/** What keeps a whole pod from being boosted, as an ordered list of small checks. */
import { MIRROR_POD_KEY } from './keys';
import type { PodFacts } from './pod';
import type { PodSkipCode } from './reasons';

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
  { code: 'WindowsPod', applies: (pod) => pod.osName === 'windows' },
  // The kubelet fails a pod that does not fit (OutOfcpu), where the scheduler would let it wait.
  { code: 'NodeNameSet', applies: (pod) => pod.nodeName !== undefined },
  // The sum of the containers may not exceed the pod's own request and limit.
  { code: 'PodLevelResources', applies: (pod) => pod.hasPodLevelResources },
  // Up to 1.36 the API server refuses every resize of a pod with resources.claims.
  { code: 'ResourceClaims', applies: (pod) => pod.hasResourceClaims },
];

function hasDistinctNames(pod: PodFacts): boolean {
  const names = new Set(pod.containers.map((container) => container.name));
  return names.size === pod.containers.length && !names.has('');
}
