/** The real helm, with folders of its own, on one cluster. */
import { execFile } from 'node:child_process';
import type { ExecFileOptions } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { toolFolder } from './chart';

export interface HelmOutput {
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

/** Large enough for the manifest of any release. */
const MAX_OUTPUT = 64 * 2 ** 20;

export class Helm {
  readonly #program: string;
  readonly #folder: string;
  readonly #kubeconfigPath: string;

  private constructor(program: string, folder: string, kubeconfigPath: string) {
    this.#program = program;
    this.#folder = folder;
    this.#kubeconfigPath = kubeconfigPath;
  }

  static async create(kubeconfigPath: string): Promise<Helm> {
    const folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-helm-'));
    return new Helm(join(await toolFolder('helm'), 'helm'), folder, kubeconfigPath);
  }

  /** Never rejects for what helm says. */
  async run(...args: readonly string[]): Promise<HelmOutput> {
    try {
      return { code: 0, ...(await this.#start(args)) };
    } catch (error) {
      return failureSchema.parse(error);
    }
  }

  /** Kills helm in its work (SIGKILL) once `until` has come to its end. */
  async kill(until: () => Promise<unknown>, ...args: readonly string[]): Promise<void> {
    const killing = new AbortController();
    const tooEarly = (): void => {
      if (!killing.signal.aborted) throw new Error('helm came to its end before it was killed');
    };
    const options = { signal: killing.signal, killSignal: 'SIGKILL' } as const;
    const ended = this.#start(args, options).then(tooEarly, tooEarly);
    try {
      await Promise.race([until(), ended]);
    } finally {
      killing.abort();
    }
    await ended;
  }

  async #start(
    args: readonly string[],
    options: Pick<ExecFileOptions, 'signal' | 'killSignal'> = {},
  ): Promise<Omit<HelmOutput, 'code'>> {
    const env = {
      PATH: process.env.PATH,
      HOME: this.#folder,
      KUBECONFIG: this.#kubeconfigPath,
      HELM_CACHE_HOME: this.#folder,
      HELM_CONFIG_HOME: this.#folder,
      HELM_DATA_HOME: this.#folder,
    };
    const encoding = 'utf8';
    return run(this.#program, args, { env, encoding, maxBuffer: MAX_OUTPUT, ...options });
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** What it said, of a run that must have gone well. */
export async function done(run: Promise<HelmOutput>): Promise<string> {
  const { code, stdout, stderr } = await run;
  if (code !== 0) throw new Error(`helm ended with ${code}: ${stderr}`);
  return stdout;
}
