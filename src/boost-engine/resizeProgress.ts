/** How far the kubelet has got with the resize that stands in a pod's spec. */
import type { ContainerFacts, PodFacts } from './pod';
import { sameQuantity } from './quantity';

export type ResizeProgress =
  /** Nothing more is to come: actuated, or no kubelet has to do anything. */
  | { readonly kind: 'Done' }
  | { readonly kind: 'Waiting' }
  /** Refused for good: the kubelet looks at it again only after another change of the spec. */
  | { readonly kind: 'Infeasible'; readonly message: string };

/**
 * Judges the resize of `containers`.
 *
 * `status.containerStatuses[].resources` is not compared with the spec: the runtime reports values
 * that it has rounded. The allocated request is kept exactly; see docs/kubelet.md.
 */
export function resizeProgress(
  pod: PodFacts,
  containers: readonly ContainerFacts[],
): ResizeProgress {
  if (!concernsKubelet(pod)) return { kind: 'Done' };
  const pending = pod.conditions.get('PodResizePending');
  if (pending?.status === 'True' && pending.reason === 'Infeasible') {
    return { kind: 'Infeasible', message: pending.message ?? '' };
  }
  const isSettled =
    hasObserved(pod) &&
    pending?.status !== 'True' &&
    pod.conditions.get('PodResizeInProgress')?.status !== 'True' &&
    containers.every((container) => isAllocated(pod, container));
  return { kind: isSettled ? 'Done' : 'Waiting' };
}

/**
 * A pod without a node, or one whose containers the kubelet has not begun, is admitted with the new
 * spec; a finished pod has nothing left to resize.
 */
function concernsKubelet(pod: PodFacts): boolean {
  return pod.nodeName !== undefined && pod.allocatedCpu.size > 0 && !isFinished(pod);
}

export function isFinished(pod: PodFacts): boolean {
  return pod.phase === 'Succeeded' || pod.phase === 'Failed';
}

/** Kubelets before 1.34 may not report the generation they have seen. */
function hasObserved(pod: PodFacts): boolean {
  return (
    pod.observedGeneration === undefined ||
    pod.generation === undefined ||
    pod.observedGeneration >= pod.generation
  );
}

function isAllocated(pod: PodFacts, container: ContainerFacts): boolean {
  const allocated = pod.allocatedCpu.get(container.name);
  return allocated === undefined || sameQuantity(allocated, container.cpu.request);
}
