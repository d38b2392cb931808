/** Finds, or builds, the programs of a real control plane: etcd and kube-apiserver. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, isExecutable, onPath, root, run, say, withTicks } from './processes.mjs';

const build = join(root, 'test', 'cluster', 'build.sh');
const tools = ['etcd', 'kube-apiserver', 'kubectl'];
const needed = ['bash', 'openssl', 'curl', 'setsid', 'flock', 'ps', 'setpriv'];

/**
 * @typedef {{kind: 'Programs', bin: string}
 *   | {kind: 'ExistingCluster', kubeconfig: string}
 *   | {kind: 'Absent', reason: string}} ControlPlane
 */

/**
 * TEST_KUBECONFIG names a cluster that tests may use; KUBECONFIG alone never does, since tests
 * create and delete what they like. KUBEBUILDER_ASSETS names a folder with ready-made programs.
 * @returns {Promise<ControlPlane>}
 */
export async function ensureControlPlane({ existingCluster = true } = {}) {
  const kubeconfig = process.env.TEST_KUBECONFIG;
  if (existingCluster && kubeconfig) {
    if (existsSync(kubeconfig)) return { kind: 'ExistingCluster', kubeconfig };
    throw new Failure(`TEST_KUBECONFIG=${kubeconfig}: no such file`);
  }
  if (process.platform !== 'linux') {
    return { kind: 'Absent', reason: `it runs on Linux, and this is ${process.platform}` };
  }
  const missing = needed.filter((program) => onPath(program) === undefined);
  if (missing.length > 0) {
    return { kind: 'Absent', reason: `these programs are missing: ${missing.join(', ')}` };
  }
  if (process.env.KUBEBUILDER_ASSETS) return readyMade(process.env.KUBEBUILDER_ASSETS);
  return ensureBuilt(tools, 'a Kubernetes API server', 5);
}

/**
 * The programs of test/cluster/build.sh by those names, built where they are missing.
 * @returns {Promise<ControlPlane>}
 */
export async function ensureBuilt(names, what, minutes) {
  return (await built(names)) ?? buildWithGo(names, what, minutes);
}

/** What the tests and the demo read, see test/support/controlPlane.ts. */
export function environmentOf(controlPlane) {
  switch (controlPlane.kind) {
    case 'Programs':
      return { CLUSTER_BIN: controlPlane.bin };
    case 'ExistingCluster':
      return { TEST_KUBECONFIG: controlPlane.kubeconfig };
    default:
      return {};
  }
}

/** For a person, after the reason why there is none. */
export const howToGetOne =
  'Install Go (the version in test/cluster/tools/go.mod, or newer), or set KUBEBUILDER_ASSETS to a\n' +
  'folder with etcd and kube-apiserver.';

function readyMade(bin) {
  const absent = ['etcd', 'kube-apiserver'].filter((program) => !isExecutable(join(bin, program)));
  if (absent.length === 0) return { kind: 'Programs', bin };
  throw new Failure(
    `KUBEBUILDER_ASSETS=${bin}: no ${absent.join(', no ')} in it; allowed is a folder with the programs etcd and kube-apiserver (kubectl is welcome)`,
  );
}

async function built(names) {
  const { code, output } = await run(build, ['--check', ...names], { capture: true });
  return code === 0 ? { kind: 'Programs', bin: folderIn(output) } : undefined;
}

async function buildWithGo(names, what, minutes) {
  const reason = await whyGoCannot();
  if (reason !== undefined) return { kind: 'Absent', reason };
  let current = names[0];
  say(`building ${what} from source (once; about ${minutes} minutes)...`);
  const { code, output } = await withTicks(
    () => `building ${current}`,
    () =>
      run(build, names, {
        capture: true,
        onLine(line) {
          const step = /^build: (\S+): (building|built in .*)$/.exec(line);
          if (step === null) return;
          current = step[1];
          say(`  ${step[1]}: ${step[2]}`);
        },
      }),
  );
  if (code === 0) return { kind: 'Programs', bin: folderIn(output) };
  say(output.split('\n').slice(-20).join('\n').trimEnd());
  throw new Failure(`test/cluster/build.sh ended with ${code}; its last lines are above`);
}

const folderIn = (output) =>
  output
    .split('\n')
    .filter((line) => line.startsWith('/'))
    .at(-1);

/** Why this machine's Go cannot build it, or undefined. */
async function whyGoCannot() {
  if (onPath('go') === undefined) return 'there is no Go to build it with';
  // GOTOOLCHAIN=local: asks for the Go that is here, instead of fetching another one.
  const env = { GOTOOLCHAIN: 'local' };
  const { output } = await run('go', ['env', 'GOVERSION'], { capture: true, env, cwd: '/' });
  const wanted = /^go (\S+)$/m.exec(readFileSync(join(root, 'test/cluster/tools/go.mod'), 'utf8'));
  const here = /^go(\d+\.\d+(\.\d+)?)/m.exec(output);
  if (here !== null && isAtLeast(here[1], wanted[1])) return undefined;
  return `Go ${wanted[1]} or newer builds it, and here is ${output.trim() || 'an unknown version'}`;
}

function isAtLeast(version, wanted) {
  const [a, b] = [version, wanted].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i++) {
    if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) > (b[i] ?? 0);
  }
  return true;
}
