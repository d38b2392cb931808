/** A command of the real bundle, run to its end. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCommand {
  readonly ended: Promise<CommandEnd>;
  /** What it has written to standard error so far. */
  stderr(): string;
  signal(name: 'SIGINT' | 'SIGTERM'): void;
}

/** Starts `startup-cpu-boost ARGS`; it does not outlive this process. */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): RunningCommand {
  const bundle = join(process.cwd(), 'dist', 'startup-cpu-boost.cjs');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, bundle, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  });
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  }
  return {
    ended: new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        resolve({ code, ...written });
      });
    }),
    stderr: () => written.stderr,
    signal: (name) => {
      child.kill(name);
    },
  };
}
