/** A real API server with a played node and a controller: what the tests of the main job live in. */
import { expect } from '@jest/globals';
import { BOOST_KEY, compileBoost, decideBoost, readPod } from '../../src/boost-engine';
import type { CpuResources, PodFacts } from '../../src/boost-engine';
import { BoostOperator } from '../../src/controller';
import type { BoostOperatorOptions } from '../../src/controller';
import {
  ApiError,
  NAMESPACES,
  PODS,
  STARTUP_CPU_BOOSTS,
  ServerClock,
  createKubeClient,
  loadKubeConfig,
  systemClock,
} from '../../src/kube';
import type { Clock, JsonObject, KubeClient } from '../../src/kube';
import { createLogger, createMetrics } from '../../src/observability';
import type { Metrics } from '../../src/observability';
import { startControlPlane } from './controlPlane';
import type { ControlPlane, ControlPlaneOptions } from './controlPlane';
import { eventually } from './eventually';
import { KubeletPlayer } from './kubelet';
import type { AutoKubelet, PodName, ResizeAnswer } from './kubelet';
import { patched } from './patched';

export interface RunningController {
  readonly metrics: Metrics;
  stop(): Promise<void>;
}

export interface ControllerOptions {
  /** How far the clock of its machine is ahead; 0 unless given. */
  readonly wrongByMs?: number;
  /** Its way to the API server; the control plane's own unless given. */
  readonly kubeconfigPath?: string;
  /** For its waiting; the deadlines of calls are the machine's. */
  readonly clock?: Clock;
  /** The deadline of a call; the client's own unless given. */
  readonly callTimeoutMs?: number;
  readonly mayRaise?: () => boolean;
}

/** Short times, but for the sweep: what it would find has to come by an event or a timer. */
const SETTINGS = {
  maximumBoostMs: 600_000,
  boostDeletedGraceMs: 1_000,
  unschedulableGraceMs: 500,
  limitRangeDefaults: 'Avoid',
  confirmTimeoutMs: 30_000,
  catchUpMs: 300_000,
  catchUpBoostLagMs: 30_000,
  catchUpExcludedNamespaces: ['kube-system'],
  sweepIntervalMs: 600_000,
  unlabelledSweepIntervalMs: 600_000,
  webhookConfiguration: 'startup-cpu-boost',
} as const;

/** Boosts, their pods, pods that start without one, LimitRanges, quotas and webhook configurations. */
export const CONTROLLER_WATCHES = 6;

export class World {
  readonly controlPlane: ControlPlane;
  readonly kubelet: KubeletPlayer;
  readonly #auto: AutoKubelet;
  readonly #answers: Map<string, ResizeAnswer>;
  #namespaces = 0;

  private constructor(
    controlPlane: ControlPlane,
    kubelet: KubeletPlayer,
    answers: Map<string, ResizeAnswer>,
  ) {
    this.controlPlane = controlPlane;
    this.kubelet = kubelet;
    this.#answers = answers;
    this.#auto = kubelet.auto({ answer: ({ name }) => answers.get(name) ?? 'Accept' });
  }

  static async start(options: ControlPlaneOptions = {}): Promise<World> {
    const controlPlane = await startControlPlane({ crds: true, ...options });
    return new World(controlPlane, await KubeletPlayer.start(controlPlane.client), new Map());
  }

  get client(): KubeClient {
    return this.controlPlane.client;
  }

  async stop(): Promise<void> {
    await this.#auto.stop();
    await this.controlPlane.stop();
  }

  /** What the node answers when this pod is resized. */
  answerResize(pod: string, answer: ResizeAnswer): void {
    this.#answers.set(pod, answer);
  }

  /** A namespace of its own for each test. */
  async namespace(): Promise<string> {
    this.#namespaces += 1;
    const name = `test-${this.#namespaces}`;
    await this.client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    return name;
  }

  /** A controller in this process, with a client of its own; its machine's clock may be wrong. */
  async startController(
    settings: Partial<BoostOperatorOptions['settings']> = {},
    options: ControllerOptions = {},
  ): Promise<RunningController> {
    const { wrongByMs = 0, kubeconfigPath = this.controlPlane.kubeconfigPath } = options;
    const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
    const machine = systemClock();
    const now = (): number => machine.now() + wrongByMs;
    const clock = new ServerClock({ ...(options.clock ?? machine), now });
    const client = createKubeClient(kubeConfig, {
      clock: { ...machine, now },
      ...(options.callTimeoutMs === undefined ? {} : { timeoutMs: options.callTimeoutMs }),
      onServerDate: (date, tookMs) => {
        clock.observe(date, tookMs);
      },
    });
    const metrics = createMetrics();
    const operator = new BoostOperator({
      kubeConfig,
      client,
      clock,
      logger: createLogger('silent', {}),
      metrics,
      settings: { ...SETTINGS, ...settings },
      ...(options.mayRaise === undefined ? {} : { mayRaise: options.mayRaise }),
    });
    await operator.start();
    operator.act(() => true);
    await eventually(() => {
      expect(operator.checks.map(({ problem }) => problem())).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    });
    return {
      metrics,
      stop: async () => {
        await operator.close();
        await client.close();
      },
    };
  }

  async createBoost(boost: JsonObject): Promise<JsonObject> {
    return this.client.create({ ...STARTUP_CPU_BOOSTS, namespace: namespaceOf(boost) }, boost);
  }

  /** Creates the pod as our webhook would have changed it. */
  async createBoosted(pod: JsonObject, boost: JsonObject): Promise<PodName> {
    const namespace = namespaceOf(pod);
    const decision = decideBoost({
      pod,
      namespace,
      boosts: [compileBoost(boost)],
      now: Date.now(),
    });
    expect(decision.kind).toBe('Boost');
    return this.createPod(patched(pod, decision.patch));
  }

  async createPod(pod: JsonObject): Promise<PodName> {
    const namespace = namespaceOf(pod);
    const stored = readPod(await this.client.create({ ...PODS, namespace }, pod));
    return { namespace, name: stored.name ?? '' };
  }

  /** Bound and running, not ready. */
  async run(pod: PodName): Promise<void> {
    await this.kubelet.bind(pod);
    await this.kubelet.running(pod);
  }

  async read(pod: PodName): Promise<PodFacts> {
    return readPod(await this.client.get({ ...PODS, ...pod }));
  }

  async exists(pod: PodName): Promise<boolean> {
    try {
      await this.read(pod);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'NotFound') return false;
      throw error;
    }
  }

  /** CPU by container, and whether the pod still carries a boost. */
  async cpuOf(pod: PodName): Promise<Readonly<Record<string, CpuResources>>> {
    const { containers } = await this.read(pod);
    return Object.fromEntries(containers.map(({ name, cpu }) => [name, cpu]));
  }

  /** Waits until the pod has this CPU and no marker. */
  async untilReverted(
    pod: PodName,
    cpu: Readonly<Record<string, CpuResources>>,
  ): Promise<PodFacts> {
    return eventually(async () => {
      const facts = await this.read(pod);
      const now = Object.fromEntries(facts.containers.map((each) => [each.name, each.cpu]));
      expect(now).toEqual(cpu);
      expect(facts.annotations?.has(BOOST_KEY) ?? false).toBe(false);
      expect(facts.labels?.has(BOOST_KEY) ?? false).toBe(false);
      return facts;
    });
  }

  async statusOf(boost: JsonObject): Promise<JsonObject> {
    const { name = '' } = readPod(boost);
    const stored = await this.client.get({
      ...STARTUP_CPU_BOOSTS,
      namespace: namespaceOf(boost),
      name,
    });
    const { status } = stored;
    return typeof status === 'object' && status !== null ? { ...status } : {};
  }
}

function namespaceOf(object: JsonObject): string {
  return readPod(object).namespace ?? '';
}
