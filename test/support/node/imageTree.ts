/** The files of the image, and its program run in them: read-only, as the user of the image. */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const configSchema = z.looseObject({
  config: z.looseObject({
    User: z.string(),
    Entrypoint: z.array(z.string()),
    Cmd: z.array(z.string()),
    Labels: z.record(z.string(), z.string()),
  }),
});
const manifestSchema = z.tuple([
  z.looseObject({ Config: z.string(), Layers: z.array(z.string()) }),
]);

export type ImageConfig = z.infer<typeof configSchema>['config'];

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningImage {
  readonly ended: Promise<Ended>;
  stop(): Promise<Ended>;
}

const run = promisify(execFile);

/**
 * As a kubelet runs it with readOnlyRootFilesystem, without rights, in namespaces of its own: their first
 * process is this shell, with which all in them ends, mounts and programs.
 */
const START = `
  mount --make-rprivate /
  mount --bind "$ROOT" "$ROOT"
  mount -t proc -o ro proc "$ROOT/proc"
  mount -o remount,bind,ro "$ROOT"
  code=0
  setpriv --no-new-privs -- chroot --userspec="$USER_ID" "$ROOT" "$@" || code=$?
  exit "$code"`;

/** The shell ends with unshare, and unshare with this process, however that ends. */
const NAMESPACES = [
  ...['setpriv', '--pdeathsig', 'KILL', '--'],
  ...['unshare', '--mount', '--pid', '--fork', '--kill-child'],
] as const;

export class ImageTree {
  readonly root: string;
  readonly config: ImageConfig;

  private constructor(root: string, config: ImageConfig) {
    this.root = root;
    this.config = config;
  }

  static async unpack(tar: string): Promise<ImageTree> {
    const folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-tree-'));
    await run('tar', ['-xf', tar, '-C', folder]);
    const text = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
    const [{ Config, Layers }] = manifestSchema.parse(JSON.parse(await text('manifest.json')));
    const { config } = configSchema.parse(JSON.parse(await text(Config)));
    const root = join(folder, 'root');
    await mkdir(root);
    for (const layer of Layers) await run('tar', ['-xf', join(folder, layer), '-C', root]);
    return new ImageTree(root, config);
  }

  /** Paths of all files that are no folders. */
  async files(folder = '/'): Promise<readonly string[]> {
    const entries = await readdir(join(this.root, folder), { withFileTypes: true });
    const paths = entries.map(async (entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? this.files(path) : [path];
    });
    return (await Promise.all(paths)).flat();
  }

  read(path: string): Promise<string> {
    return readFile(join(this.root, path), 'utf8');
  }

  /** The entry point with arguments; those of the image where there are none. */
  start(
    args: readonly string[] = this.config.Cmd,
    env: Readonly<Record<string, string>> = {},
  ): RunningImage {
    const { Entrypoint, User } = this.config;
    const [program, ...namespaces] = NAMESPACES;
    const command = [...namespaces, 'sh', '-ec', START, 'start', ...Entrypoint, ...args];
    const child = spawn(program, command, {
      env: { PATH: process.env.PATH, ROOT: this.root, USER_ID: User, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = endOf(child);
    const stop = async (): Promise<Ended> => {
      const [shell] = await childrenOf(child.pid);
      const [running] = await childrenOf(shell);
      if (running !== undefined) process.kill(running, 'SIGTERM');
      return ended;
    };
    return { ended, stop };
  }

  async remove(): Promise<void> {
    await rm(join(this.root, '..'), { recursive: true, force: true });
  }
}

async function childrenOf(pid: number | undefined): Promise<readonly number[]> {
  if (pid === undefined) return [];
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text
    .trim()
    .split(' ')
    .filter((word) => word !== '')
    .map(Number);
}

function endOf(child: ChildProcess): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ code, ...written });
    });
  });
}
