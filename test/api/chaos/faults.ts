/** Does the faults of a plan to a stage, in their order. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../../src/kube';
import { WEBHOOK_CONFIGURATION } from '../../support/certificateStage';
import { faultName } from './plan';
import type { Fault, PlannedFault, Target } from './plan';
import type { Replica } from './replica';
import { persist, unless } from './retries';
import { FIRST_SPECS, NAMESPACE, boostManifest, boostSpecBody } from './shapes';
import type { BoostName, BoostSpec } from './shapes';
import { SERVING_SECRET } from './stage';
import type { ChaosStage } from './stage';

const LOOK_AGAIN_MS = 100;

export class Faults {
  /** What has been done, by name. */
  readonly done = new Map<string, number>();
  readonly #stage: ChaosStage;
  readonly #specs: Record<BoostName, BoostSpec> = { ...FIRST_SPECS };
  /** What the faults so far still have to mend. */
  readonly #mending = new Set<Promise<void>>();
  /** The API server and the boosts, where one thing happens at a time. */
  #api: Promise<void> = Promise.resolve();

  constructor(stage: ChaosStage) {
    this.#stage = stage;
  }

  /**
   * Each at its time, or later: a replica has to be up before it is ended, and one other of its role
   * too, as a PodDisruptionBudget would see to. Resolves when all is mended.
   */
  async play(faults: readonly PlannedFault[], startedAt: number): Promise<void> {
    for (const { atMs, fault } of faults) {
      await delay(Math.max(0, startedAt + atMs - Date.now()));
      await this.#begin(fault);
      const name = faultName(fault);
      this.done.set(name, (this.done.get(name) ?? 0) + 1);
    }
    await Promise.all(this.#mending);
  }

  /** Resolves when the fault is on its way; that it is mended is awaited by `play`. */
  async #begin(fault: Fault): Promise<void> {
    switch (fault.kind) {
      case 'Kill':
      case 'Stop': {
        const replica = await this.#choose(fault.target);
        const signal = fault.kind === 'Kill' ? 'SIGKILL' : 'SIGTERM';
        this.#mend(replica.replace(signal, fault.downMs));
        return;
      }
      case 'Pause': {
        const replica = await this.#choose(fault.target);
        this.#mend(replica.pause(fault.forMs));
        return;
      }
      case 'Stall': {
        const replica = await this.#choose(fault.target);
        replica.stall();
        return;
      }
      case 'RestartApiServer':
        this.#mend(this.#alone(() => this.#restartApiServer(fault.downMs)));
        return;
      case 'EmptyServingSecret':
        this.#mend(this.#alone(() => this.#emptyServingSecret()));
        return;
      case 'BlankBundles':
        this.#mend(this.#alone(() => this.#blankBundles()));
        return;
      case 'EditBoost':
        this.#mend(this.#alone(() => this.#editBoost(fault.boost, fault.spec)));
        return;
      case 'RecreateBoost':
        this.#mend(this.#alone(() => this.#recreateBoost(fault.boost, fault.goneMs)));
        return;
    }
  }

  #mend(work: Promise<void>): void {
    this.#mending.add(work);
    // A failure is for `play` to tell.
    work.then(
      () => this.#mending.delete(work),
      () => undefined,
    );
  }

  #alone(work: () => Promise<void>): Promise<void> {
    const mine = this.#api.then(work);
    this.#api = mine.catch(() => undefined);
    return mine;
  }

  async #choose(target: Target): Promise<Replica> {
    for (;;) {
      const found = await this.#find(target);
      if (found?.isUp === true && this.#isSpared(found)) return found;
      await delay(LOOK_AGAIN_MS);
    }
  }

  #isSpared(replica: Replica): boolean {
    return this.#of(replica.role).some((other) => other !== replica && other.isUp);
  }

  async #find(target: Target): Promise<Replica | undefined> {
    const replicas = this.#of(target.role);
    if (target.role === 'admission') return replicas[target.index];
    const up = replicas.filter(({ isUp }) => isUp);
    const leads = await Promise.all(up.map((replica) => replica.leads()));
    return up.find((_, index) => leads[index] === (target.which === 'Leader'));
  }

  #of(role: Replica['role']): readonly Replica[] {
    return this.#stage.replicas.filter((replica) => replica.role === role);
  }

  async #restartApiServer(downMs: number): Promise<void> {
    const { controlPlane } = this.#stage;
    await controlPlane.stopApiServer();
    await delay(downMs);
    await controlPlane.startApiServer();
  }

  async #emptyServingSecret(): Promise<void> {
    const patch = { type: 'merge', body: { data: null } } as const;
    await persist(() => this.#stage.client.patch(SERVING_SECRET, patch));
  }

  async #blankBundles(): Promise<void> {
    for (const resource of [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS]) {
      const ref = { ...resource, name: WEBHOOK_CONFIGURATION };
      const path = '/webhooks/0/clientConfig/caBundle';
      const operations = [{ op: 'replace', path, value: '' }] as const;
      await persist(() => this.#stage.client.patch(ref, { type: 'json', operations }));
    }
  }

  async #editBoost(boost: BoostName, spec: BoostSpec): Promise<void> {
    const ref = { ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE, name: boost };
    const patch = { type: 'merge', body: { spec: boostSpecBody(spec) } } as const;
    await persist(() => this.#stage.client.patch(ref, patch));
    this.#specs[boost] = spec;
  }

  async #recreateBoost(boost: BoostName, goneMs: number): Promise<void> {
    const { client } = this.#stage;
    const boosts = { ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE };
    await persist(() => unless('NotFound', () => client.delete({ ...boosts, name: boost })));
    await delay(goneMs);
    const manifest = boostManifest(boost, this.#specs[boost]);
    await persist(() => unless('AlreadyExists', () => client.create(boosts, manifest)));
  }
}
