/** Releases of the chart on a real API server, with everything that they start played by real processes. */
import { expect } from '@jest/globals';
import { readPod } from '../../src/boost-engine';
import type { CpuResources } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { aPod } from './builders';
import { CHART } from './chart';
import { eventually } from './eventually';
import { Helm } from './helm';
import type { HelmOutput } from './helm';
import type { PodName } from './kubelet';
import { WorkloadPlayer } from './workloadPlayer';
import { World } from './world';

export const RELEASE = 'boost';
/** Of the release, and where it is. */
export const FULLNAME = `${RELEASE}-startup-cpu-boost`;
export const NAMESPACE = 'boost-system';

/** What `aPod` asks for, and what a boost of `aBoost` makes of it. */
export const ORIGINAL: CpuResources = { request: '250m', limit: '1' };
export const BOOSTED: CpuResources = { request: '500m', limit: '2' };

export class Installation {
  readonly world: World;
  readonly helm: Helm;
  readonly player: WorkloadPlayer;

  private constructor(world: World, helm: Helm) {
    this.world = world;
    this.helm = helm;
    this.player = new WorkloadPlayer(world.controlPlane);
  }

  static async start(options: { readonly crds: boolean }): Promise<Installation> {
    const world = await World.start(options);
    return new Installation(world, await Helm.create(world.controlPlane.kubeconfigPath));
  }

  async stop(): Promise<void> {
    try {
      await this.player.stop();
    } finally {
      await this.helm.close();
      await this.world.stop();
    }
  }

  /** `helm install` of our chart, until everything is ready. */
  install(...args: readonly string[]): Promise<HelmOutput> {
    return this.#release('install', RELEASE, NAMESPACE, '--create-namespace', ...args);
  }

  /** As another release, somewhere else. */
  installAs(name: string, namespace: string, ...args: readonly string[]): Promise<HelmOutput> {
    return this.#release('install', name, namespace, '--create-namespace', ...args);
  }

  upgrade(...args: readonly string[]): Promise<HelmOutput> {
    return this.#release('upgrade', RELEASE, NAMESPACE, ...args);
  }

  rollback(revision: number): Promise<HelmOutput> {
    return this.helm.run('rollback', RELEASE, String(revision), '-n', NAMESPACE, ...WAIT);
  }

  uninstall(...args: readonly string[]): Promise<HelmOutput> {
    return this.helm.run('uninstall', RELEASE, '-n', NAMESPACE, ...WAIT, ...args);
  }

  /** Creates the pod once its like would get this CPU: a webhook is in force a moment after it is there. */
  async createPodWith(
    cpu: CpuResources,
    pod: { namespace: string; name: string },
  ): Promise<PodName> {
    await this.untilNewPodsHave(cpu, pod.namespace);
    return this.world.createPod(aPod(pod));
  }

  async untilNewPodsHave(cpu: CpuResources, namespace: string): Promise<void> {
    await eventually(async () => {
      const pods = { ...PODS, namespace };
      const pod = await this.world.client.create(pods, aPod({ namespace, name: 'try' }), {
        dryRun: true,
      });
      expect(cpuIn(pod)).toEqual(cpu);
    });
  }

  #release(
    command: 'install' | 'upgrade',
    name: string,
    namespace: string,
    ...args: readonly string[]
  ): Promise<HelmOutput> {
    return this.helm.run(command, name, CHART, '-n', namespace, ...WAIT, ...args);
  }
}

/** Of the first container. */
export function cpuIn(pod: JsonObject): CpuResources | undefined {
  return readPod(pod).containers[0]?.cpu;
}

/** Longer than anything takes on a loaded machine. */
const WAIT = ['--wait', '--timeout', '3m'] as const;
