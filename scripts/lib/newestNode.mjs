/** The newest Node that we support, as a program from npm: the one that images are tried with. */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Failure, isExecutable, must, run, say } from './processes.mjs';

export const newestNode = '24.22.3';

/** The path of the program; installed once into the cache, which .ci/run shares. */
export async function ensureNewestNode() {
  const name = `node-linux-${process.arch}`;
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'startup-cpu-boost', `node-${newestNode}-${process.arch}`);
  const program = join(folder, 'node_modules', name, 'bin', 'node');
  if (!isExecutable(program)) {
    say(`installing Node ${newestNode}...`);
    mkdirSync(folder, { recursive: true });
    const quiet = ['--silent', '--no-audit', '--no-fund', '--no-save'];
    await must('npm', ['install', ...quiet, '--prefix', folder, `${name}@${newestNode}`]);
  }
  const { output } = await run(program, ['--version'], { capture: true });
  if (output.trim() === `v${newestNode}`) return program;
  throw new Failure(`${program} should be Node ${newestNode}, and is ${output.trim()}`);
}

// For .ci/run, which runs tests on it.
if (process.argv[1] === import.meta.filename) process.stdout.write(`${await ensureNewestNode()}\n`);
