/** Creates the pods of a plan and plays their lives: bound, running, Ready or never, some deleted early. */
import { setTimeout as delay } from 'node:timers/promises';
import { BOOST_KEY, readPod } from '../../../src/boost-engine';
import { PODS } from '../../../src/kube';
import type { KubeClient } from '../../../src/kube';
import type { KubeletPlayer, PodName } from '../../support/kubelet';
import type { PlannedPod } from './plan';
import { persist, unless } from './retries';
import { NAMESPACE, isEligible, podManifest } from './shapes';

/**
 * A pod without its boost takes so long to get Ready: boosts are for pods that would start slowly,
 * and whoever catches up needs a leader first, which takes 6 s after a kill.
 */
const UNBOOSTED_START_MS = 25_000;

export interface PodLivesOptions {
  readonly client: KubeClient;
  readonly kubelet: KubeletPlayer;
}

export class PodLives {
  /** Eligible pods by what their creation was answered with. */
  created = 0;
  boosted = 0;
  unboosted = 0;
  /** Pods that are being played. */
  running = 0;
  readonly #options: PodLivesOptions;

  constructor(options: PodLivesOptions) {
    this.#options = options;
  }

  /** From `startedAt` (epoch milliseconds) on; resolves when every life has been played. */
  async play(pods: readonly PlannedPod[], startedAt: number): Promise<void> {
    await Promise.all(
      pods.map(async (pod) => {
        await delay(Math.max(0, startedAt + pod.createAtMs - Date.now()));
        this.running += 1;
        await this.#live(pod);
        this.running -= 1;
      }),
    );
  }

  async #live(pod: PlannedPod): Promise<void> {
    const isBoosted = await this.#create(pod);
    this.#count(pod, isBoosted);
    const name = { namespace: NAMESPACE, name: pod.name };
    const ended = new AbortController();
    // A pod that is deleted goes through no more of its life; what is under way finds it gone.
    await Promise.all([
      this.#start(pod, name, isBoosted, ended.signal),
      this.#deleteEarly(pod, name, ended),
    ]);
  }

  async #start(
    pod: PlannedPod,
    name: PodName,
    isBoosted: boolean,
    ended: AbortSignal,
  ): Promise<void> {
    const { kubelet } = this.#options;
    const isSlow = isEligible(pod.shape) && !isBoosted;
    const step = async (afterMs: number, write: () => Promise<void>): Promise<void> => {
      await sleep(afterMs, ended);
      if (!ended.aborted) await persist(() => unless('NotFound', write));
    };
    // An answer that was lost: it is bound already.
    await step(pod.bindAfterMs, () => unless('Conflict', () => kubelet.bind(name)));
    await step(pod.runAfterMs, () => kubelet.running(name));
    if (pod.readyAfterMs === undefined) return;
    const readyAfterMs = isSlow ? Math.max(UNBOOSTED_START_MS, pod.readyAfterMs) : pod.readyAfterMs;
    await step(readyAfterMs, () => kubelet.ready(name));
  }

  async #deleteEarly(
    { deleteAfterMs }: PlannedPod,
    { namespace, name }: PodName,
    ended: AbortController,
  ): Promise<void> {
    if (deleteAfterMs === undefined) return;
    await delay(deleteAfterMs);
    ended.abort();
    const ref = { ...PODS, namespace, name };
    await persist(() => unless('NotFound', () => this.#options.client.delete(ref)));
  }

  /** Whether it has got its boost. */
  async #create({ name, shape, boost }: PlannedPod): Promise<boolean> {
    const { client } = this.#options;
    const pods = { ...PODS, namespace: NAMESPACE };
    const manifest = podManifest(name, shape, boost);
    const stored = await persist(async () => {
      const answer = await unless('AlreadyExists', () => client.create(pods, manifest));
      // An answer that was lost.
      return answer ?? client.get({ ...pods, name });
    });
    return readPod(stored).labels?.has(BOOST_KEY) ?? false;
  }

  #count({ shape }: PlannedPod, isBoosted: boolean): void {
    this.created += 1;
    if (isBoosted) this.boosted += 1;
    else if (isEligible(shape)) this.unboosted += 1;
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
