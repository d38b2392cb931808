/** A real node on this machine with the operator installed by Helm, and its end. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createKubeClient, loadKubeConfig } from '../../src/kube';
import type { KubeClient } from '../../src/kube';

/** Where the operator runs. */
export const SYSTEM_NAMESPACE = 'startup-cpu-boost-system';

const RELEASE = 'startup-cpu-boost';
const OUTPUT_BYTES = 64 * 2 ** 20;
const run = promisify(execFile);

export interface NodeClusterOptions {
  /** The folder of the cluster's programs, kubectl and Helm. */
  readonly bin: string;
  readonly report: (step: string) => void;
  readonly signal: AbortSignal;
}

export class NodeCluster {
  readonly kubeconfigPath: string;
  readonly #dir: string;
  readonly #options: NodeClusterOptions;
  #client: KubeClient | undefined;

  private constructor(dir: string, options: NodeClusterOptions) {
    this.#dir = dir;
    this.#options = options;
    this.kubeconfigPath = join(dir, 'kubeconfig');
  }

  /** A folder for it; after a failure of anything that follows, `stop` ends what there is by then. */
  static async create(options: NodeClusterOptions): Promise<NodeCluster> {
    return new NodeCluster(await mkdtemp(join(tmpdir(), 'startup-cpu-boost-')), options);
  }

  get client(): KubeClient {
    if (this.#client === undefined) throw new Error('the cluster is not up');
    return this.#client;
  }

  async start(images: readonly string[]): Promise<void> {
    const { report } = this.#options;
    await this.#step(['up', '--node', `--owner=${process.pid}`]);
    report('a Kubernetes node: API server, scheduler, kubelet, containerd');
    await this.#step(['load', ...images]);
    report('the images of the operator and of the program, imported without a registry');
    this.#client = createKubeClient(loadKubeConfig({ kind: 'File', path: this.kubeconfigPath }));
  }

  /** As a cluster administrator does it; resolves when all replicas are Ready. */
  async install(image: string): Promise<void> {
    const [repository = '', tag = ''] = image.split(':');
    const chart = join('helm', 'kube-startup-cpu-boost');
    const where = ['--namespace', SYSTEM_NAMESPACE, '--create-namespace'];
    const own = `image.repository=${repository},image.tag=${tag},image.pullPolicy=Never`;
    const wait = ['--wait', '--timeout=180s'];
    await this.#program('helm', ['install', RELEASE, chart, ...where, '--set', own, ...wait]);
    this.#options.report(`the operator: helm install ${RELEASE} ${chart}`);
  }

  /** The logs of all programs, and what kubectl tells of the pods. To be called before `stop`. */
  async saveLogs(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const copying = cp(join(this.#dir, 'logs'), folder, { recursive: true });
    await copying.catch(() => undefined);
    const texts = {
      'pods.txt': ['describe', 'pods', '-A'],
      'events.txt': ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
      'operator.log': ['logs', '-n', SYSTEM_NAMESPACE, '--prefix', '--tail=-1'].concat(
        '-l',
        `app.kubernetes.io/instance=${RELEASE}`,
      ),
    };
    for (const [name, args] of Object.entries(texts)) {
      const text = await this.#program('kubectl', args).catch(String);
      await writeFile(join(folder, name), text);
    }
  }

  /** Ends every process and removes networks, mounts and cgroups, whatever of them is there. */
  async stop(): Promise<void> {
    await this.#client?.close();
    await this.#script(['down']);
    await rm(this.#dir, { recursive: true, force: true });
  }

  async #step(args: readonly string[]): Promise<void> {
    this.#options.signal.throwIfAborted();
    await this.#script(args);
    this.#options.signal.throwIfAborted();
  }

  /** In a session of its own: Ctrl-C in a terminal is for us, who then take the cluster down. */
  async #script(args: readonly string[]): Promise<void> {
    const script = join(process.cwd(), 'test', 'cluster', 'cluster.sh');
    const env = { ...process.env, CLUSTER_BIN: this.#options.bin };
    await run('setsid', ['--wait', script, ...args, '--dir', this.#dir], {
      env,
      maxBuffer: OUTPUT_BYTES,
    });
  }

  async #program(name: string, args: readonly string[]): Promise<string> {
    const env = { ...process.env, KUBECONFIG: this.kubeconfigPath };
    const { signal, bin } = this.#options;
    const options = { env, signal, maxBuffer: OUTPUT_BYTES };
    return (await run(join(bin, name), args, options)).stdout;
  }
}
