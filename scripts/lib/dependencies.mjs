/** Installs what package-lock.json says, unless that very lock file was installed already. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { Failure, root, run, say, withTicks } from './processes.mjs';

// The first Node 20 that can require() ES modules without a flag, as package.json's engines say.
const oldestNode = [20, 19];
const installed = join(root, 'node_modules', '.startup-cpu-boost-lock');

export function checkNodeVersion() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [wantedMajor, wantedMinor] = oldestNode;
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  throw new Failure(
    `Node ${oldestNode.join('.')} or newer is needed; this is ${process.versions.node}`,
  );
}

export async function ensureDependencies() {
  checkNodeVersion();
  if (isInstalled()) return;
  await withLock(
    join(root, 'build', '.install-lock'),
    (pid) => say(`process ${pid} is installing the dependencies; waiting for it...`),
    install,
  );
}

async function install() {
  if (isInstalled()) return;
  const hash = hashOfLockFile();
  say('installing dependencies (about 1 minute)...');
  const { code, output } = await withTicks(
    () => 'npm ci',
    () => run('npm', ['ci', '--no-audit', '--no-fund'], { capture: true }),
  );
  if (code !== 0) {
    say(output.split('\n').slice(-30).join('\n').trimEnd());
    throw new Failure(
      `"npm ci" ended with ${code}; its last lines are above. Is a package registry reachable?`,
    );
  }
  writeFileSync(installed, hash);
}

function isInstalled() {
  try {
    return readFileSync(installed, 'utf8') === hashOfLockFile();
  } catch {
    return false;
  }
}

const hashOfLockFile = () =>
  createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
