/** Starts the program as a Deployment, and watches its pod and its cgroup until it has settled. */
import { setTimeout as delay } from 'node:timers/promises';
import { fieldsOf, integerOf, itemsOf, readPod, textOf } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { Clock, JsonObject, KubeClient, ResourceRef } from '../../src/kube';
import { cgroupFolder, cpuIn } from '../../test/support/node/cgroup';
import { NAMESPACE } from '../cast';
import { failureOf } from '../process';
import { watchPods } from '../stage';
import { ORIGINAL_MILLICORES, deploymentOf } from './program';
import type { Program } from './program';
import type { QuotaStep, Start } from './start';

const DEPLOYMENTS: ResourceRef = { group: 'apps', version: 'v1', plural: 'deployments' };

/** Far below what is to be shown, a second, and far above what a look costs. */
const LOOK_EVERY_MS = 20;
/** Five times what a quarter of a CPU needs on a machine that does nothing else. */
const READY_WITHIN_MS = 300_000;
/** A quota that has been given back stays so; what comes later is not given back in time. */
const SETTLED_MS = 3_000;
const GIVEN_BACK_WITHIN_MS = 30_000;
const GONE_WITHIN_MS = 60_000;
const TELL_EVERY_MS = 10_000;

/** What can be told while it goes on. */
export type Moment =
  | { readonly kind: 'Created' }
  | { readonly kind: 'Quota'; readonly from: number; readonly to: number }
  | { readonly kind: 'FirstQuota'; readonly to: number }
  | { readonly kind: 'Waiting'; readonly quota: number }
  | { readonly kind: 'Ready' };

export interface Measuring {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly tell: (at: number, moment: Moment) => void;
}

/** Resolves when the pod is Ready and its quota has settled. */
export async function measureStart(
  name: string,
  program: Program,
  measuring: Measuring,
): Promise<Start> {
  const { client } = measuring;
  const ended = new AbortController();
  const signal = AbortSignal.any([measuring.signal, ended.signal]);
  const observation = new Observation({ ...measuring, signal });
  const watching = watchPods(client, signal, (_, pod) => observation.see(pod));
  try {
    observation.begin();
    await client.create({ ...DEPLOYMENTS, namespace: NAMESPACE }, deploymentOf(name, program));
    return await Promise.race([observation.start(name), failureOf(watching)]);
  } finally {
    ended.abort();
    await watching.catch(() => undefined);
  }
}

/** Resolves when its pod is gone: the next start is not to share the CPU with this one. */
export async function removeDeployment(
  name: string,
  { client, clock, signal }: Omit<Measuring, 'tell'>,
): Promise<void> {
  await client.delete({ ...DEPLOYMENTS, namespace: NAMESPACE, name });
  const end = clock.monotonic() + GONE_WITHIN_MS;
  while ((await client.list(PODS, { namespace: NAMESPACE })).items.length > 0) {
    if (clock.monotonic() > end) throw new Error(`the pod of ${name} does not go`);
    await delay(100, undefined, { signal });
  }
}

async function quotaIn(folder: string): Promise<number> {
  try {
    return (await cpuIn(folder)).quota ?? Infinity;
  } catch (error) {
    throw new Error('the cgroup of the container has gone: its program has ended', {
      cause: error,
    });
  }
}

class Observation {
  readonly #measuring: Measuring;
  #begin = 0;
  #container: string | undefined;
  #readyAt: number | undefined;
  #restarts = 0;
  readonly #quota: QuotaStep[] = [];

  constructor(measuring: Measuring) {
    this.#measuring = measuring;
  }

  /** Now is the moment that all times are counted from. */
  begin(): void {
    this.#begin = this.#measuring.clock.monotonic();
    this.#tell({ kind: 'Created' });
  }

  see(pod: JsonObject): Promise<void> {
    const [status] = itemsOf(fieldsOf(fieldsOf(pod).get('status')).get('containerStatuses'));
    const fields = fieldsOf(status);
    this.#container ??= textOf(fields.get('containerID'));
    this.#restarts = integerOf(fields.get('restartCount')) ?? this.#restarts;
    const isReady = readPod(pod).conditions.get('Ready')?.status === 'True';
    if (isReady && this.#readyAt === undefined) {
      this.#readyAt = this.#now();
      this.#tell({ kind: 'Ready' });
    }
    return Promise.resolve();
  }

  async start(name: string): Promise<Start> {
    const folder = await this.#cgroup();
    let told = this.#now();
    while (!this.#isOver()) {
      const quota = await quotaIn(folder);
      this.#look(quota);
      if (this.#readyAt === undefined && this.#now() - told > TELL_EVERY_MS) {
        told = this.#now();
        this.#tell({ kind: 'Waiting', quota });
      }
      await this.#pause();
    }
    const readyAt = this.#readyAt ?? this.#now();
    return {
      name,
      readyAt,
      endedAt: this.#now(),
      quota: this.#quota,
      restarts: this.#restarts,
    };
  }

  async #cgroup(): Promise<string> {
    while (this.#container === undefined) {
      if (this.#now() > READY_WITHIN_MS) throw new Error('the pod does not run in time');
      await this.#pause();
    }
    return cgroupFolder(this.#container);
  }

  #look(quota: number): void {
    const last = this.#quota.at(-1);
    if (last?.millicores === quota) return;
    this.#quota.push({ at: this.#now(), millicores: quota });
    this.#tell(
      last === undefined
        ? { kind: 'FirstQuota', to: quota }
        : { kind: 'Quota', from: last.millicores, to: quota },
    );
  }

  #isOver(): boolean {
    const now = this.#now();
    if (this.#readyAt === undefined) {
      if (now > READY_WITHIN_MS) throw new Error('the pod is not Ready in time');
      return false;
    }
    const last = this.#quota.at(-1);
    const isBack = last?.millicores === ORIGINAL_MILLICORES;
    const settledAt = Math.max(last?.at ?? now, this.#readyAt) + SETTLED_MS;
    return isBack ? now > settledAt : now > this.#readyAt + GIVEN_BACK_WITHIN_MS;
  }

  #pause(): Promise<void> {
    return delay(LOOK_EVERY_MS, undefined, { signal: this.#measuring.signal });
  }

  #now(): number {
    return this.#measuring.clock.monotonic() - this.#begin;
  }

  #tell(moment: Moment): void {
    this.#measuring.tell(this.#now(), moment);
  }
}
