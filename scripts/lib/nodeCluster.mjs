/** A cluster with real nodes on this machine, see test/cluster: what it needs, up, down. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './controlPlane.mjs';
import { must, onPath, root, run, say, withTicks } from './processes.mjs';

const script = join(root, 'test', 'cluster', 'cluster.sh');
const built = [
  ...['etcd', 'kube-apiserver', 'kubectl', 'kube-controller-manager', 'kube-scheduler'],
  ...['kubelet', 'kube-proxy', 'helm'],
];

// Debian's package for each program; CNI plug-ins are in a folder of their own.
const packages = {
  busybox: 'busybox-static',
  conntrack: 'conntrack',
  containerd: 'containerd',
  ctr: 'containerd',
  curl: 'curl',
  findmnt: 'util-linux',
  flock: 'util-linux',
  ip: 'iproute2',
  iptables: 'iptables',
  nsenter: 'util-linux',
  openssl: 'openssl',
  ps: 'procps',
  python3: 'python3',
  runc: 'runc',
  setpriv: 'util-linux',
  unshare: 'util-linux',
};
const cniFolders = ['/usr/lib/cni', '/opt/cni/bin'];

/** The Debian packages that are missing here. */
export function missingPackages() {
  const missing = Object.keys(packages)
    .filter((program) => onPath(program) === undefined)
    .map((program) => packages[program]);
  if (!cniFolders.some((folder) => existsSync(join(folder, 'ptp')))) {
    missing.push('containernetworking-plugins');
  }
  return [...new Set(missing)];
}

/**
 * The folder of the cluster's programs and Helm, or why there can be no node here.
 * @returns {Promise<{kind: 'Programs', bin: string} | {kind: 'Absent', reasons: string[]}>}
 */
export async function ensureNodePrograms() {
  const reasons = obstacles();
  if (reasons.length > 0) return { kind: 'Absent', reasons };
  const programs = await ensureBuilt(built, 'Kubernetes and Helm', 9);
  if (programs.kind === 'Programs') return programs;
  return { kind: 'Absent', reasons: [programs.reason] };
}

function obstacles() {
  if (process.platform !== 'linux') return [`nodes run on Linux, and this is ${process.platform}`];
  const missing = missingPackages();
  return [
    ...(process.getuid() === 0 ? [] : ['nodes need root']),
    ...(missing.length === 0
      ? []
      : [`programs are missing; on Debian: apt-get install ${missing.join(' ')}`]),
  ];
}

/**
 * Runs `work` with a cluster of its own, which goes down when the work or this process has ended,
 * however it ended. The work resolves with an exit code; unless that is 0, the logs are kept.
 */
export async function withNodeCluster({ nodes, images, bin }, work) {
  const dir = mkdtempSync(join(tmpdir(), 'startup-cpu-boost-'));
  const env = { CLUSTER_BIN: bin };
  const cluster = (...args) => must(script, [...args, '--dir', dir], { capture: true, env });
  let isWell = false;
  say(`starting a cluster with ${nodes} nodes...`);
  try {
    await withTicks(
      () => 'starting the cluster',
      () => cluster('up', '--nodes', String(nodes), `--owner=${process.pid}`),
    );
    await cluster('load', ...images);
    const code = await work({ kubeconfig: join(dir, 'kubeconfig') });
    isWell = code === 0;
    return code;
  } finally {
    await run(script, ['down', '--dir', dir], { capture: true, env });
    if (isWell) rmSync(dir, { recursive: true, force: true });
    else say(`the logs of the cluster, and of our pods in it, are in ${dir}/logs`);
  }
}
