/** The real kubectl: what people who type see. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { JsonObject } from '../../src/kube';

export interface KubectlOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const run = promisify(execFile);

/** Of every object of a cluster. */
const MAX_OUTPUT = 64 * 2 ** 20;

const failureSchema = z.looseObject({
  code: z.int(),
  stdout: z.string(),
  stderr: z.string(),
});

/** `kubectl create -f -` of one manifest. */
export async function kubectlCreate(
  kubeconfigPath: string,
  manifest: JsonObject,
): Promise<KubectlOutput> {
  return runKubectl(kubeconfigPath, ['create', '-f', '-'], JSON.stringify(manifest));
}

export async function kubectl(
  kubeconfigPath: string,
  ...args: readonly string[]
): Promise<KubectlOutput> {
  return runKubectl(kubeconfigPath, args, '');
}

/** The command with `-f -` and the manifests. */
export async function kubectlWith(
  kubeconfigPath: string,
  command: readonly string[],
  manifests: readonly JsonObject[],
): Promise<KubectlOutput> {
  const list = { apiVersion: 'v1', kind: 'List', items: manifests };
  return runKubectl(kubeconfigPath, [...command, '-f', '-'], JSON.stringify(list));
}

/** Never rejects for what kubectl says. */
async function runKubectl(
  kubeconfigPath: string,
  args: readonly string[],
  input: string,
): Promise<KubectlOutput> {
  const options = { maxBuffer: MAX_OUTPUT };
  const child = run(await program(), ['--kubeconfig', kubeconfigPath, ...args], options);
  child.child.stdin?.end(input);
  try {
    return { code: 0, ...(await child) };
  } catch (error) {
    return failureSchema.parse(error);
  }
}

/** Beside the other programs of the cluster where it is, else the one of the machine. */
async function program(): Promise<string> {
  const given = process.env.CLUSTER_BIN ?? '';
  const script = join(process.cwd(), 'test', 'cluster', 'build.sh');
  const folder = given === '' ? (await run(script, ['kubectl'])).stdout.trim() : given;
  const path = join(folder, 'kubectl');
  return existsSync(path) ? path : 'kubectl';
}
