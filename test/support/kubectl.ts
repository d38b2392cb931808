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

const failureSchema = z.looseObject({
  code: z.int(),
  stdout: z.string(),
  stderr: z.string(),
});

/** `kubectl create -f -` of one manifest; never rejects for what kubectl says. */
export async function kubectlCreate(
  kubeconfigPath: string,
  manifest: JsonObject,
): Promise<KubectlOutput> {
  return kubectl(kubeconfigPath, ['create'], [manifest]);
}

/** The command with `-f -` and the manifests; never rejects for what kubectl says. */
export async function kubectl(
  kubeconfigPath: string,
  command: readonly string[],
  manifests: readonly JsonObject[],
): Promise<KubectlOutput> {
  const program = await kubectlProgram();
  const child = run(program, ['--kubeconfig', kubeconfigPath, ...command, '-f', '-'], {
    maxBuffer: 16 * 2 ** 20,
  });
  child.child.stdin?.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
  try {
    return { code: 0, ...(await child) };
  } catch (error) {
    return failureSchema.parse(error);
  }
}

/** Beside the other programs of the cluster where it is, else the one of the machine. */
async function kubectlProgram(): Promise<string> {
  const given = process.env.CLUSTER_BIN ?? '';
  const script = join(process.cwd(), 'test', 'cluster', 'build.sh');
  const folder = given === '' ? (await run(script, ['kubectl'])).stdout.trim() : given;
  const path = join(folder, 'kubectl');
  return existsSync(path) ? path : 'kubectl';
}
