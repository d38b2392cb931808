/** Child processes of the scripts: none of them outlives the script that started it. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { constants as system } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A failure that a person can act on: printed as it is, without a stack. */
export class Failure extends Error {}

export const say = (text) => process.stderr.write(`${text}\n`);

/** The first executable of that name on the PATH, or undefined. */
export function onPath(program) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (isExecutable(join(folder, program))) return join(folder, program);
  }
  return undefined;
}

export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a program to its end, in the root of the repository. Signals that reach this process reach
 * the program too; `setpriv` makes the kernel end it should this process be killed outright.
 * After a signal the script ends with it, unless `endsOnSignal` says that this is how the program
 * ends well.
 * @returns {Promise<{code: number, output: string}>} `output` is empty unless `capture` is set.
 */
export function run(program, args, options = {}) {
  const { env = {}, capture = false, cwd = root, onLine, endsOnSignal = false } = options;
  const guard = onPath('setpriv') ? ['setpriv', '--pdeathsig', 'KILL', '--'] : [];
  const [command, ...rest] = [...guard, program, ...args];
  const child = spawn(command, rest, {
    cwd,
    env: { ...process.env, ...env },
    stdio: capture ? ['ignore', 'pipe', 'pipe'] : 'inherit',
  });
  let output = '';
  for (const stream of capture ? [child.stdout, child.stderr] : []) {
    createInterface({ input: stream }).on('line', (line) => {
      output += `${line}\n`;
      onLine?.(line);
    });
  }

  let stoppedBy;
  const forward = (signal) => {
    // A terminal has sent Ctrl-C to the whole group already; a second one would be "hurry up".
    if (!(signal === 'SIGINT' && process.stdin.isTTY)) child.kill(signal);
    stoppedBy = signal;
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Failure(`${program} did not start: ${error.message}`)));
    child.on('close', (code, signal) => {
      for (const each of signals) process.off(each, forward);
      if (stoppedBy !== undefined && !endsOnSignal) process.exit(128 + system.signals[stoppedBy]);
      resolve({ code: code ?? 128 + system.signals[signal], output });
    });
  });
}

/** Runs a program whose failure ends the script with the same code; it has said why itself. */
export async function must(program, args, options) {
  const { code, output } = await run(program, args, options);
  if (code !== 0) {
    if (output) say(output.trimEnd());
    throw new Failure(`${[program, ...args].join(' ')}: ended with ${code}`);
  }
  return output;
}

/** A line every 15 s while something slow is at work, so that nobody takes it for dead. */
export async function withTicks(describe, work) {
  const begin = Date.now();
  const seconds = () => Math.round((Date.now() - begin) / 1000);
  const ticks = setInterval(() => say(`  ${describe()}: ${seconds()} s so far`), 15_000);
  try {
    return await work();
  } finally {
    clearInterval(ticks);
  }
}

/** The end of every script: a `Failure` is a sentence, anything else is a bug with its stack. */
export async function main(body) {
  try {
    process.exitCode = (await body()) ?? 0;
  } catch (error) {
    say(error instanceof Failure ? `error: ${error.message}` : error.stack);
    process.exitCode = 1;
  }
}
