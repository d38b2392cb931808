/** The quality-of-service class of a pod: qos.ComputePodQOS in k8s.io/kubernetes/pkg/apis/core/helper/qos. */
import type { ContainerFacts } from './pod';
import { parseQuantity } from './quantity';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/** The part of a container that the class depends on. */
export type ContainerResources = Pick<ContainerFacts, 'requests' | 'limits'>;

const QOS_RESOURCES = ['cpu', 'memory'] as const;

/**
 * The class of a pod with these containers and init containers, and without pod-level resources.
 *
 * The API server stores the class at creation and refuses every resize that would change it, so a
 * boost that changed it could never be reverted.
 */
export function qosClassOf(containers: readonly ContainerResources[]): QosClass {
  const requests = sumOf(containers.map((container) => container.requests));
  const limits = sumOf(containers.map((container) => container.limits));
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const isGuaranteed =
    containers.every(hasAllLimits) &&
    requests.size === limits.size &&
    [...requests].every(([resource, sum]) => limits.get(resource) === sum);
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function hasAllLimits(container: ContainerResources): boolean {
  return QOS_RESOURCES.every((resource) => positive(container.limits?.get(resource)) > 0n);
}

function sumOf(lists: readonly (ReadonlyMap<string, string> | undefined)[]): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const list of lists) {
    for (const resource of QOS_RESOURCES) {
      const quantity = positive(list?.get(resource));
      if (quantity > 0n) sums.set(resource, (sums.get(resource) ?? 0n) + quantity);
    }
  }
  return sums;
}

/** Zero and unreadable quantities do not count. */
function positive(text: string | undefined): bigint {
  const quantity = parseQuantity(text) ?? 0n;
  return quantity > 0n ? quantity : 0n;
}
