/** Everything that runs during the demo, from the API server to the played node, and its end. */
import { execFile } from 'node:child_process';
import { access, constants, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { BOOST_KEY, readPod } from '../src/boost-engine';
import { ApiError, NAMESPACES, PODS, SECRETS, STARTUP_CPU_BOOSTS } from '../src/kube';
import type { JsonObject, KubeClient } from '../src/kube';
import { getTable } from '../test/support/apiTable';
import { startControlPlane } from '../test/support/controlPlane';
import type { ControlPlane } from '../test/support/controlPlane';
import { KubeletPlayer } from '../test/support/kubelet';
import type { AutoKubelet } from '../test/support/kubelet';
import { startProcess } from '../test/support/processes';
import type { BoostProcess, ProcessOptions } from '../test/support/processes';
import { installWebhooks } from '../test/support/webhooks';
import { BOOSTS, NAMESPACE, PROBE } from './cast';

const BOOSTING_WITHIN_MS = 20_000;

/** Where the two processes would run, with the Secrets of their certificates. */
const OWN_NAMESPACE = 'startup-cpu-boost';

/** As the chart makes them: empty, so that the rights on them can be given by name. */
const CERTIFICATE_SECRETS = ['startup-cpu-boost-ca', 'startup-cpu-boost-serving'];

const run = promisify(execFile);

export interface StageOptions {
  /** dist/startup-cpu-boost.cjs. */
  readonly bundlePath: string;
  /** Where the logs go if something fails. */
  readonly logFolder: string;
  readonly report: (step: string) => void;
  readonly signal: AbortSignal;
}

export class Stage {
  readonly #options: StageOptions;
  #controlPlane: ControlPlane | undefined;
  #processes: BoostProcess[] = [];
  #auto: AutoKubelet | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  /** Step by step; after a failure `stop` ends what has been started by then. */
  async start(): Promise<{
    readonly client: KubeClient;
    readonly kubelet: KubeletPlayer;
    readonly kubeconfigPath: string;
    readonly admission: BoostProcess;
    readonly controller: BoostProcess;
  }> {
    const { report, signal, bundlePath } = this.#options;
    this.#controlPlane = await startControlPlane({ crds: true });
    signal.throwIfAborted();
    const { client, kubeconfigPath } = this.#controlPlane;
    report('Kubernetes API server and etcd, with the CRD');

    const kubelet = await KubeletPlayer.start(client);
    this.#auto = kubelet.auto();
    report('a node whose kubelet this demo plays');

    for (const name of [OWN_NAMESPACE, NAMESPACE]) {
      await client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      });
    }
    for (const name of CERTIFICATE_SECRETS) {
      await client.create(
        { ...SECRETS, namespace: OWN_NAMESPACE },
        { apiVersion: 'v1', kind: 'Secret', metadata: { name } },
      );
    }
    const env = { POD_NAMESPACE: OWN_NAMESPACE, CERT_MODE: 'self-managed' };
    // Together: admission is Ready with the certificate that the controller makes.
    const [admission, controller] = await Promise.all([
      this.#process('admission', { kubeconfigPath, bundlePath, env }),
      this.#process('controller', { kubeconfigPath, bundlePath, env }),
    ]);
    report('one admission and one controller process, with a certificate of their own making');

    await installWebhooks(client, { url: admission.webhookUrl });
    for (const boost of BOOSTS) await this.#createBoost(client, boost);
    await this.#untilBoosting(client);
    report('the webhooks, whose CA the controller has filled in, and two boosts');
    return { client, kubelet, kubeconfigPath, admission, controller };
  }

  /** Says what went wrong on the way down instead of stopping there. */
  async stop(): Promise<readonly unknown[]> {
    const problems: unknown[] = [];
    const attempt = async (work: Promise<unknown> | undefined): Promise<void> => {
      await work?.catch((error: unknown) => problems.push(error));
    };
    await attempt(this.#auto?.stop());
    await Promise.all(this.#processes.map((each) => attempt(each.stop())));
    await attempt(this.#controlPlane?.stop());
    return problems;
  }

  /**
   * The folder with the logs; undefined where no control plane came up, whose own error then tells
   * where its logs are. To be called before `stop`, which takes them away.
   */
  async saveLogs(): Promise<string | undefined> {
    if (this.#controlPlane === undefined) return undefined;
    const { logFolder } = this.#options;
    await rm(logFolder, { recursive: true, force: true });
    await mkdir(logFolder, { recursive: true });
    await cp(join(this.#controlPlane.dir, 'logs'), logFolder, { recursive: true });
    for (const each of this.#processes) {
      await writeFile(join(logFolder, `${each.role}.log`), `${each.output()}\n`);
    }
    return logFolder;
  }

  async #process(role: 'admission' | 'controller', options: ProcessOptions): Promise<BoostProcess> {
    this.#options.signal.throwIfAborted();
    const started = await startProcess(role, options);
    this.#processes.push(started);
    return started;
  }

  /** The API server needs a moment to hear whom it may trust; until then it refuses boosts. */
  async #createBoost(client: KubeClient, boost: JsonObject): Promise<void> {
    const end = Date.now() + BOOSTING_WITHIN_MS;
    for (;;) {
      try {
        await client.create({ ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE }, boost);
        return;
      } catch (error) {
        const isServer = error instanceof ApiError && error.failure.kind === 'Server';
        if (!isServer || Date.now() > end) throw error;
      }
      await delay(100, undefined, { signal: this.#options.signal });
    }
  }

  /** The API server needs a moment for a new webhook, and admission one for a new boost. */
  async #untilBoosting(client: KubeClient): Promise<void> {
    const end = Date.now() + BOOSTING_WITHIN_MS;
    const pods = { ...PODS, namespace: NAMESPACE };
    for (;;) {
      const answer = readPod(await client.create(pods, PROBE, { dryRun: true }));
      if (answer.labels?.has(BOOST_KEY) === true) return;
      if (Date.now() > end) throw new Error('the API server does not call the webhook, or in vain');
      await delay(100, undefined, { signal: this.#options.signal });
    }
  }
}

/** kubectl of the control plane's programs, or of the PATH; undefined if there is none. */
export async function findKubectl(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const folders = [env.CLUSTER_BIN ?? '', ...(env.PATH ?? '').split(delimiter)];
  for (const folder of folders.filter((each) => each !== '')) {
    const path = join(folder, 'kubectl');
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}

/** `kubectl get startupcpuboosts`, by kubectl itself where there is one. */
export async function boostTable(
  kubeconfigPath: string,
  kubectl: string | undefined,
): Promise<string> {
  if (kubectl !== undefined) {
    const args = ['--kubeconfig', kubeconfigPath, '-n', NAMESPACE, 'get', 'startupcpuboosts'];
    return (await run(kubectl, args)).stdout.trimEnd();
  }
  const { group, version, plural } = STARTUP_CPU_BOOSTS;
  const path = `/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}`;
  const { columns, rows } = await getTable(kubeconfigPath, path);
  const lines = [columns.map((name) => name.toUpperCase()), ...rows.map((row) => row.map(cell))];
  const widths = columns.map((_, index) =>
    Math.max(...lines.map((line) => line[index]?.length ?? 0)),
  );
  const pad = (text: string, index: number): string => text.padEnd(widths[index] ?? 0);
  return lines.map((line) => line.map(pad).join('   ').trimEnd()).join('\n');
}

function cell(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Everything in the demo's namespace that is watched; the events of one pod in their order. */
export async function watchPods(
  client: KubeClient,
  signal: AbortSignal,
  see: (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: JsonObject) => Promise<void>,
): Promise<void> {
  const selection = { namespace: NAMESPACE };
  while (!signal.aborted) {
    const { items, resourceVersion } = await client.list(PODS, selection);
    for (const pod of items) await see('MODIFIED', pod);
    const watch = client.watch(PODS, {
      ...selection,
      resourceVersion,
      timeoutSeconds: 600,
      signal,
    });
    for await (const { type, object } of watch) {
      if (type !== 'BOOKMARK') await see(type, object);
    }
  }
}
