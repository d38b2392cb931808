/** Admission reviews for tests, as the API server sends them. */
import type { AdmissionRequest } from '../../../src/admission/admissionReview';
import { decodeReview } from '../../../src/admission/admissionReview';
import type { JsonObject } from '../../../src/kube';
import { aPod } from '../../support/builders';

/** Of a real API server's review; replaced or, where undefined, left out field by field. */
export function aReview(request: JsonObject = {}, review: JsonObject = {}): JsonObject {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: 'c1d3b2f0-0d0b-4f6f-8f5c-0d4d5b0c4a11',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'system:serviceaccount:kube-system:replicaset-controller' },
      object: aPod(),
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...request,
    },
    ...review,
  };
}

/** A review of a StartupCPUBoost. */
export function aBoostReview(request: JsonObject): JsonObject {
  return aReview({
    kind: { group: 'autoscaling.x-k8s.io', version: 'v1alpha1', kind: 'StartupCPUBoost' },
    resource: { group: 'autoscaling.x-k8s.io', version: 'v1alpha1', resource: 'startupcpuboosts' },
    ...request,
  });
}

export function requestOf(review: JsonObject): AdmissionRequest {
  const decoded = decodeReview(review);
  if (decoded.kind === 'Malformed') throw new Error(decoded.why);
  return decoded.request;
}
