/** CPU as the kernel gives it: the cgroup files of a container and of its pod, read on the host. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

export interface CgroupCpu {
  /** What it may use at most, in millicores; undefined where there is no limit. */
  readonly quota: number | undefined;
  /** Its part where CPU is short: cpu.shares of version 1, cpu.weight of version 2. */
  readonly weight: number;
}

export interface ContainerCgroups {
  readonly container: CgroupCpu;
  readonly pod: CgroupCpu;
}

const ROOT = '/sys/fs/cgroup';
const isVersion2 = existsSync(join(ROOT, 'cgroup.controllers'));

const run = promisify(execFile);

/** @param containerId as in the status of a pod, `containerd://…` */
export async function cgroupsOf(containerId: string): Promise<ContainerCgroups> {
  const folder = await cgroupFolder(containerId);
  return { container: await cpuIn(folder), pod: await cpuIn(dirname(folder)) };
}

/** Of the container itself; the one above it is its pod's. */
export async function cgroupFolder(containerId: string): Promise<string> {
  const id = containerId.slice(containerId.lastIndexOf('/') + 1);
  const root = isVersion2 ? ROOT : join(ROOT, 'cpu/');
  const { stdout } = await run('find', [root, '-type', 'd', '-name', id]);
  const folder = stdout.trim();
  if (folder === '') throw new Error(`no cgroup of container ${id}`);
  return folder;
}

export async function cpuIn(folder: string): Promise<CgroupCpu> {
  const numbers = async (name: string): Promise<number[]> =>
    (await readFile(join(folder, name), 'utf8')).trim().split(' ').map(Number);
  const [quota = NaN, period = NaN] = isVersion2
    ? await numbers('cpu.max')
    : [...(await numbers('cpu.cfs_quota_us')), ...(await numbers('cpu.cfs_period_us'))];
  const [weight = NaN] = await numbers(isVersion2 ? 'cpu.weight' : 'cpu.shares');
  // No limit is -1 in version 1, and "max" in version 2.
  return { quota: quota > 0 ? (quota * 1_000) / period : undefined, weight };
}

/**
 * The weights that stand for so many millicores. Of version 2 there are two: runc 1.3.2 has changed how
 * shares become weights (ConvertCPUSharesToCgroupV2Value in opencontainers/cgroups).
 */
export function weightsOf(millicores: number): readonly number[] {
  const shares = Math.max(2, Math.floor((millicores * 1_024) / 1_000));
  if (!isVersion2) return [shares];
  const linear = 1 + Math.floor(((shares - 2) * 9_999) / 262_142);
  const log = Math.log2(shares);
  const quadratic = Math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34));
  return [linear, quadratic];
}
