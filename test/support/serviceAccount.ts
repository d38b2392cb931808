/** A user of the API with the rights that a test gives it and takes away, and with tokens that end. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AuthenticationV1TokenRequest,
  CoreV1Api,
  V1BoundObjectReference,
  V1TokenRequestSpec,
} from '@kubernetes/client-node';
import { expect } from '@jest/globals';
import { ApiError, NAMESPACES, SECRETS, createKubeClient, loadKubeConfig } from '../../src/kube';
import type { JsonObject, ObjectRef, ResourceRef } from '../../src/kube';
import type { ControlPlane } from './controlPlane';
import { eventually } from './eventually';

const SERVICE_ACCOUNTS: ResourceRef = { group: '', version: 'v1', plural: 'serviceaccounts' };
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const ROLES: ResourceRef = { ...RBAC, plural: 'clusterroles' };
const BINDINGS: ResourceRef = { ...RBAC, plural: 'clusterrolebindings' };
const RBAC_VERSION = 'rbac.authorization.k8s.io/v1';
const ACCESS_REVIEWS: ResourceRef = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
};
const NAME = 'tester';

export interface IssuedToken {
  readonly token: string;
  /** Settles when the API server does not know it any more. */
  refuse(): Promise<void>;
}

export class ServiceAccount {
  readonly #controlPlane: ControlPlane;
  readonly #namespace: string;
  #tokens = 0;

  private constructor(controlPlane: ControlPlane, namespace: string) {
    this.#controlPlane = controlPlane;
    this.#namespace = namespace;
  }

  /** Has the rights from the beginning. */
  static async create(
    controlPlane: ControlPlane,
    namespace: string,
    rules: readonly JsonObject[],
  ): Promise<ServiceAccount> {
    const { client } = controlPlane;
    await client.create(
      { ...SERVICE_ACCOUNTS, namespace },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME } },
    );
    await client.create(ROLES, {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRole',
      metadata: { name: namespace },
      rules,
    });
    const account = new ServiceAccount(controlPlane, namespace);
    await account.grant();
    return account;
  }

  /** Settles when it has the rights. */
  async grant(): Promise<void> {
    const name = this.#namespace;
    await this.#controlPlane.client.create(BINDINGS, {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', namespace: name, name: NAME }],
    });
    await this.#untilAllowed(true);
  }

  /** Settles when it has none. */
  async revoke(): Promise<void> {
    await this.#controlPlane.client.delete({ ...BINDINGS, name: this.#namespace });
    await this.#untilAllowed(false);
  }

  /** Other rights from now on; they are in force a moment later. */
  async allow(rules: readonly JsonObject[]): Promise<void> {
    const role = { ...ROLES, name: this.#namespace };
    await this.#controlPlane.client.patch(role, { type: 'merge', body: { rules } });
  }

  /** A kubeconfig of its own, with a token that lasts as long as the API server. */
  async kubeconfig(): Promise<string> {
    const path = join(this.#controlPlane.dir, `${this.#namespace}.kubeconfig`);
    const { token } = await this.issueToken();
    await writeKubeconfig(this.#controlPlane, path, token);
    return path;
  }

  /** Bound to a Secret of its own, with which it ends. */
  async issueToken(): Promise<IssuedToken> {
    const { client } = this.#controlPlane;
    const namespace = this.#namespace;
    this.#tokens += 1;
    const secret: ObjectRef = { ...SECRETS, namespace, name: `token-${this.#tokens}` };
    await client.create(
      { ...SECRETS, namespace },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: secret.name } },
    );
    const bound = new V1BoundObjectReference();
    bound.apiVersion = 'v1';
    bound.kind = 'Secret';
    bound.name = secret.name;
    const token = await requestToken(this.#controlPlane, { namespace, name: NAME }, bound);
    return {
      token,
      refuse: async () => {
        await client.delete(secret);
        await this.#untilRefused(token);
      },
    };
  }

  /** A changed binding, or role, is in force a moment later. */
  async untilMayPatchResize(allowed: boolean): Promise<void> {
    await this.#untilAllowed(allowed, { resource: 'pods', subresource: 'resize', verb: 'patch' });
  }

  async #untilAllowed(
    allowed: boolean,
    resourceAttributes: JsonObject = { resource: 'pods', verb: 'list' },
  ): Promise<void> {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: `system:serviceaccount:${this.#namespace}:${NAME}`,
        resourceAttributes,
      },
    };
    await eventually(async () => {
      const { status } = await this.#controlPlane.client.create(ACCESS_REVIEWS, review);
      expect(status).toMatchObject({ allowed });
    });
  }

  /** The API server goes by its memory of a token for 10 s. */
  async #untilRefused(token: string): Promise<void> {
    const path = join(this.#controlPlane.dir, 'with-token');
    await writeKubeconfig(this.#controlPlane, path, token);
    const client = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    await eventually(async () => {
      const failure = await client.get({ ...NAMESPACES, name: 'default' }).catch(failureKind);
      expect(failure).toBe('Unauthorized');
    });
    await client.close();
  }
}

export interface AccountName {
  readonly namespace: string;
  readonly name: string;
}

/** A kubeconfig for a service account that is there, with a token that lasts longer than any test. */
export async function kubeconfigOf(
  controlPlane: ControlPlane,
  account: AccountName,
): Promise<string> {
  const path = join(controlPlane.dir, `${account.namespace}-${account.name}.kubeconfig`);
  await writeKubeconfig(controlPlane, path, await requestToken(controlPlane, account));
  return path;
}

async function requestToken(
  { kubeconfigPath }: ControlPlane,
  account: AccountName,
  bound?: V1BoundObjectReference,
): Promise<string> {
  const body = new AuthenticationV1TokenRequest();
  body.spec = new V1TokenRequestSpec();
  body.spec.audiences = [];
  if (bound !== undefined) body.spec.boundObjectRef = bound;
  const api = loadKubeConfig({ kind: 'File', path: kubeconfigPath }).makeApiClient(CoreV1Api);
  const { status } = await api.createNamespacedServiceAccountToken({ ...account, body });
  return status?.token ?? '';
}

async function writeKubeconfig(
  { kubeconfigPath }: ControlPlane,
  path: string,
  token: string,
): Promise<void> {
  const cluster = loadKubeConfig({ kind: 'File', path: kubeconfigPath }).getCurrentCluster();
  await writeFile(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: NAME } }],
      clusters: [
        {
          name: 'test',
          cluster: {
            server: cluster?.server,
            'certificate-authority-data': cluster?.caData,
          },
        },
      ],
      users: [{ name: NAME, user: { token } }],
    }),
  );
}

function failureKind(error: unknown): string {
  return error instanceof ApiError ? error.failure.kind : String(error);
}
