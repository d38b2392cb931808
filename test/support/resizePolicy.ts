/** A ValidatingAdmissionPolicy that refuses every resize in one namespace. */
import { expect } from '@jest/globals';
import { ApiError, PODS } from '../../src/kube';
import type { KubeClient, ResourceRef } from '../../src/kube';
import { aPod } from './builders';
import { eventually } from './eventually';

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1' } as const;
const POLICIES: ResourceRef = { ...ADMISSION, plural: 'validatingadmissionpolicies' };
const BINDINGS: ResourceRef = { ...ADMISSION, plural: 'validatingadmissionpolicybindings' };
const API_VERSION = 'admissionregistration.k8s.io/v1';

export const POLICY_MESSAGE = 'no resizes on Fridays';

export interface ResizePolicy {
  /** Resolves when the API server knows that it is gone. */
  remove(): Promise<void>;
}

/** Resolves when the policy is in force. */
export async function refuseResizes(client: KubeClient, namespace: string): Promise<ResizePolicy> {
  const name = `no-resizes-${namespace}`;
  await client.create(POLICIES, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods/resize'] },
        ],
      },
      validations: [{ expression: 'false', message: POLICY_MESSAGE }],
    },
  });
  await client.create(BINDINGS, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: {
      policyName: name,
      validationActions: ['Deny'],
      matchResources: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      },
    },
  });
  // A pod of its own to try it on.
  const probe = { ...PODS, namespace, name: 'probe' };
  await client.create({ ...PODS, namespace }, aPod({ namespace, name: 'probe', labels: {} }));
  const until = (outcome: 'Invalid' | 'Accepted') =>
    eventually(async () => {
      expect(await tryResize(client, probe)).toBe(outcome);
    });
  await until('Invalid');
  return {
    remove: async () => {
      await client.delete({ ...BINDINGS, name });
      await client.delete({ ...POLICIES, name });
      await until('Accepted');
      await client.delete(probe, { gracePeriodSeconds: 0 });
    },
  };
}

async function tryResize(
  client: KubeClient,
  probe: { readonly namespace: string; readonly name: string } & ResourceRef,
): Promise<string> {
  const body = { spec: { containers: [{ name: 'app', resources: { limits: { cpu: '1' } } }] } };
  try {
    await client.patch(
      { ...probe, subresource: 'resize' },
      { type: 'strategic', body },
      { dryRun: true },
    );
    return 'Accepted';
  } catch (error) {
    return error instanceof ApiError ? error.failure.kind : String(error);
  }
}
