/** The API's own check of the types in an admission policy, which a controller manager makes. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { JsonObject, KubeClient, ResourceRef } from '../../src/kube';
import { toolFolder } from './chart';
import type { ControlPlane } from './controlPlane';
import { eventually } from './eventually';
import { listAt, objectAt, textAt } from './objectAt';

const REGISTRATION = { group: 'admissionregistration.k8s.io', version: 'v1' } as const;
export const POLICIES: ResourceRef = { ...REGISTRATION, plural: 'validatingadmissionpolicies' };

export interface TypeChecker {
  /** What is wrong with the expressions of a policy; nothing where all is well. */
  check(policy: JsonObject): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** kube-controller-manager with the one controller that checks. */
export async function startTypeChecker(controlPlane: ControlPlane): Promise<TypeChecker> {
  const program = 'kube-controller-manager';
  const flags = [
    '--controllers=validatingadmissionpolicy-status-controller',
    '--leader-elect=false',
    '--secure-port=0',
    `--kubeconfig=${controlPlane.kubeconfigPath}`,
  ];
  const path = join(await toolFolder(program), program);
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', path, ...flags], {
    stdio: 'ignore',
  });
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => {
      resolve();
    });
  });
  return {
    check: (policy) => check(controlPlane.client, policy),
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/**
 * The checker looks at validations alone, not at variables and match conditions: each of these is
 * checked as a validation of a copy, which is bound to nothing.
 */
async function check(client: KubeClient, policy: JsonObject): Promise<readonly string[]> {
  const name = `${textAt(objectAt(policy, 'metadata'), 'name')}-types`;
  const spec = objectAt(policy, 'spec');
  const expressions = ['matchConditions', 'variables', 'validations']
    .flatMap((key) => listAt(spec, key))
    .map((each) => textAt(each, 'expression'));
  const validations = expressions.map((each) => ({ expression: `[${each}].size() == 1` }));
  const copy = { ...policy, metadata: { name }, spec: { ...spec, validations } };
  await client.create(POLICIES, copy);
  const checked = await eventually(async () => {
    const { status } = await client.get({ ...POLICIES, name });
    expect(status).toHaveProperty('typeChecking');
    return objectAt({ status }, 'status');
  });
  await client.delete({ ...POLICIES, name });
  const warnings = listAt(objectAt(checked, 'typeChecking'), 'expressionWarnings');
  return warnings.map((each) => textAt(each, 'warning'));
}
