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
  const child = run(await kubectl(), ['--kubeconfig', kubeconfigPath, 'create', '-f', '-']);
  child.child.stdin?.end(JSON.stringify(manifest));
  try {
    return { code: 0, ...(await child) };
  } catch (error) {
    return failureSchema.parse(error);
  }
}

/** Beside the other programs of the cluster where it is, else the one of the machine. */
async function kubectl(): Promise<string> {
  const given = process.env.CLUSTER_BIN ?? '';
  const script = join(process.cwd(), 'test', 'cluster', 'build.sh');
  const folder = given === '' ? (await run(script, ['kubectl'])).stdout.trim() : given;
  const path = join(folder, 'kubectl');
  return existsSync(path) ? path : 'kubectl';
}
