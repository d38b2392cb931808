/** A lock between processes: a folder that only one of them can make, with its owner's PID inside. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// Between making the folder and writing the PID there is a moment without an owner.
const ownerless = 10_000;

/** Runs `work` while no other process holds `path`; `onWait(pid)` is called once if one does. */
export async function withLock(path, onWait, work) {
  let waited = false;
  while (!take(path)) {
    if (isStale(path)) {
      removeStale(path);
      continue;
    }
    if (!waited) onWait(ownerOf(path) ?? 'unknown');
    waited = true;
    await sleep(500);
  }
  const release = () => rmSync(path, { recursive: true, force: true });
  process.on('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function take(path) {
  mkdirSync(dirname(path), { recursive: true });
  try {
    mkdirSync(path);
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  writeFileSync(join(path, 'pid'), String(process.pid));
  return true;
}

function ownerOf(path) {
  try {
    return Number(readFileSync(join(path, 'pid'), 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}

function isStale(path) {
  const owner = ownerOf(path);
  if (owner !== undefined) return !isAlive(owner);
  try {
    return Date.now() - statSync(path).mtimeMs > ownerless;
  } catch {
    return false;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Moved away before it is judged again: of several who saw it stale, one moves it. */
function removeStale(path) {
  const aside = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  if (isStale(aside)) rmSync(aside, { recursive: true, force: true });
  else renameSync(aside, path);
}
