/** The cluster with real nodes that scripts/node.mjs has started, and the programs that people use on it. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NAMESPACES, createKubeClient, loadKubeConfig } from '../../../src/kube';
import type { KubeClient, ResourceRef } from '../../../src/kube';
import { eventually } from '../eventually';

const SERVICE_ACCOUNTS: ResourceRef = { group: '', version: 'v1', plural: 'serviceaccounts' };

/** Kubelets, containers and Helm on two cores: what comes at all comes within seconds, or a minute. */
export const NODE_PATIENCE_MS = 120_000;

const run = promisify(execFile);

export class NodeCluster {
  readonly kubeconfigPath = setting('NODE_TEST_KUBECONFIG');
  readonly client: KubeClient = createKubeClient(
    loadKubeConfig({ kind: 'File', path: this.kubeconfigPath }),
  );

  /** Standard output; rejects with standard error where the program fails. */
  kubectl(...args: readonly string[]): Promise<string> {
    return this.#program('kubectl', args);
  }

  helm(...args: readonly string[]): Promise<string> {
    return this.#program('helm', args);
  }

  async #program(name: string, args: readonly string[]): Promise<string> {
    const { stdout } = await run(join(setting('CLUSTER_BIN'), name), args, {
      env: { ...process.env, KUBECONFIG: this.kubeconfigPath },
      maxBuffer: 64 * 2 ** 20,
    });
    return stdout;
  }

  /** A namespace of its own, in which pods can be created. */
  async namespace(purpose: string): Promise<string> {
    const name = `${purpose}-${randomUUID().slice(0, 8)}`;
    await this.client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    const account = { ...SERVICE_ACCOUNTS, namespace: name, name: 'default' };
    await eventually(() => this.client.get(account));
    return name;
  }

  async removeNamespace(name: string): Promise<void> {
    await this.kubectl('delete', 'namespace', name, '--timeout=100s');
  }
}

/** What scripts/node.mjs has set. */
export function setting(name: string): string {
  const value = process.env[name] ?? '';
  if (value === '') throw new Error(`${name} is not set: run these tests by "npm run test:node"`);
  return value;
}
