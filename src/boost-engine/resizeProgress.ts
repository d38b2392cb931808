/** How far the kubelet has got with the resize that stands in a pod's spec. */
import type { ContainerFacts, PodFacts } from './pod';
import { sameQuantity } from './quantity';

export type ResizeProgress =
  /** Nothing more is to come: actuated, or no kubelet has to do anything. */
  | { readonly kind: 'Done' }
  /** `until`: epoch milliseconds at which the answer changes without an event. */
  | { readonly kind: 'Waiting'; readonly until: number }
  /** Waited for long: the node is lost, or its kubelet cannot. */
  | { readonly kind: 'NotConfirmed' }
  /** Refused for good: the kubelet looks at it again only after another change of the spec. */
  | { readonly kind: 'Infeasible'; readonly message: string };

/**
 * Without `status.observedGeneration` (Kubernetes before 1.34) the status may still be that of the
 * time before the resize; by then a kubelet that is well has written the next one.
 */
const SETTLE_MS = 5_000;

export interface Waiting {
  /** Epoch milliseconds since when the caller has seen the pod wait; left out for the first time. */
  readonly waitingSince?: number;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly settings: ConfirmSettings;
}

export interface ConfirmSettings {
  /** How long a kubelet may take to confirm a resize, in milliseconds. */
  readonly confirmTimeoutMs: number;
}

/**
 * Judges the resize of `containers`.
 *
 * `status.containerStatuses[].resources` is not compared with the spec: the runtime reports values
 * that it has rounded. The allocated request is kept exactly.
 */
export function resizeProgress(
  pod: PodFacts,
  containers: readonly ContainerFacts[],
  { waitingSince, now, settings }: Waiting,
): ResizeProgress {
  if (!concernsKubelet(pod)) return { kind: 'Done' };
  const pending = pod.conditions.get('PodResizePending');
  if (pending?.status === 'True' && pending.reason === 'Infeasible' && isSeen(pod)) {
    return { kind: 'Infeasible', message: pending.message ?? '' };
  }
  const since = waitingSince ?? now;
  if (isSettled(pod, containers)) {
    const until = pod.observedGeneration === undefined ? since + SETTLE_MS : now;
    return now >= until ? { kind: 'Done' } : { kind: 'Waiting', until };
  }
  const until = since + settings.confirmTimeoutMs;
  return now >= until ? { kind: 'NotConfirmed' } : { kind: 'Waiting', until };
}

/** The kubelet has seen the spec as it is, and has nothing left to do for it. */
function isSettled(pod: PodFacts, containers: readonly ContainerFacts[]): boolean {
  return (
    isSeen(pod) &&
    pod.conditions.get('PodResizePending')?.status !== 'True' &&
    pod.conditions.get('PodResizeInProgress')?.status !== 'True' &&
    containers.every((container) => isAllocated(pod, container))
  );
}

/** Whether the status is of the spec as it is, as far as it tells. */
function isSeen({ observedGeneration, generation = 0 }: PodFacts): boolean {
  return observedGeneration === undefined || observedGeneration >= generation;
}

/** Whether the kubelet has looked at the CPU of the containers and said that it has no room, or cannot. */
export function isHeldBack(pod: PodFacts, containers: readonly ContainerFacts[]): boolean {
  return (
    isSeen(pod) &&
    pod.conditions.get('PodResizePending')?.status === 'True' &&
    !containers.every((container) => isAllocated(pod, container))
  );
}

/** Whether a resize of the pod is under way, somebody else's perhaps. */
export function isResizing(pod: PodFacts): boolean {
  return ['PodResizePending', 'PodResizeInProgress'].some(
    (type) => pod.conditions.get(type)?.status === 'True',
  );
}

/** Whether the kubelet has taken the pod in: before that a larger pod might not get in at all. */
export function isAdmitted(pod: PodFacts): boolean {
  return pod.nodeName !== undefined && pod.allocatedCpu.size > 0;
}

/**
 * A pod without a node, or one whose containers the kubelet has not begun, is admitted with the new
 * spec; a finished pod has nothing left to resize.
 */
function concernsKubelet(pod: PodFacts): boolean {
  return isAdmitted(pod) && !isFinished(pod);
}

export function isFinished(pod: PodFacts): boolean {
  return pod.phase === 'Succeeded' || pod.phase === 'Failed';
}

function isAllocated(pod: PodFacts, container: ContainerFacts): boolean {
  const allocated = pod.allocatedCpu.get(container.name);
  return allocated === undefined || sameQuantity(allocated, container.cpu.request);
}
