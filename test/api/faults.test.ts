/** Whatever fails between the controller and the API server, every boosted pod ends at its own CPU. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import { ApiError, STARTUP_CPU_BOOSTS } from '../../src/kube';
import type { JsonObject, ObjectRef } from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { installCrds } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { FaultProxy } from '../support/faultProxy';
import type { Fault, Injection, RequestMatch } from '../support/faultProxy';
import type { PodName } from '../support/kubelet';
import { leapClock } from '../support/leapClock';
import type { LeapClock } from '../support/leapClock';
import { ServiceAccount } from '../support/serviceAccount';
import { World } from '../support/world';
import type { ControllerOptions, RunningController } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };

/** Gives the CPU back. */
const RESIZE: RequestMatch = { verb: 'patch', resource: 'pods', subresource: 'resize' };
/** Takes the marker off. */
const CLEAR: RequestMatch = { verb: 'patch', resource: 'pods', subresource: '' };
const BOOSTS: RequestMatch = { resource: 'startupcpuboosts', subresource: '' };

/** Boosts, pods with a boost, starting ones, limit ranges, quotas and webhook configurations. */
const WATCHES = 6;

let world: World;
let proxy: FaultProxy;
let clock: LeapClock;
let controller: RunningController;
let namespace: string;
let boost: JsonObject;
let hurrying: NodeJS.Timeout;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  clock = leapClock();
  // Backoffs and retries of up to minutes are waited for in seconds.
  hurrying = setInterval(() => {
    clock.leap(500);
  }, 20);
  proxy = await FaultProxy.start(world.controlPlane.kubeconfigPath);
  boost = await world.createBoost(aBoost({ namespace }));
  await startController();
});

afterEach(async () => {
  clearInterval(hurrying);
  await controller.stop();
  await proxy.stop();
});

/** One that reaches the API server through the proxy only; no sweep helps it. */
async function startController(options: ControllerOptions = {}, user?: JsonObject): Promise<void> {
  const kubeconfigPath = join(world.controlPlane.dir, 'through-proxy');
  await proxy.writeKubeconfig(kubeconfigPath, user);
  controller = await world.startController(
    { sweepIntervalMs: 10 ** 9 },
    { kubeconfigPath, clock, ...options },
  );
  await untilWatching();
}

async function restartController(options: ControllerOptions, user?: JsonObject): Promise<void> {
  await controller.stop();
  await startController(options, user);
}

async function untilWatching(): Promise<void> {
  await eventually(() => {
    expect(proxy.openWatches()).toBe(WATCHES);
  });
}

interface Boosted {
  readonly pod: PodName;
  readonly generation: number;
}

async function boostedPods(...names: readonly string[]): Promise<readonly Boosted[]> {
  return Promise.all(
    names.map(async (name) => {
      const pod = await world.createBoosted(aPod({ namespace, name }), boost);
      await world.run(pod);
      const { generation = 0 } = await world.read(pod);
      return { pod, generation };
    }),
  );
}

async function getReady(pods: readonly Boosted[]): Promise<void> {
  await Promise.all(pods.map(({ pod }) => world.kubelet.ready(pod)));
}

/** At exactly the original CPU, by one resize, and not marked any more. */
async function expectReverted(pods: readonly Boosted[]): Promise<void> {
  for (const { pod, generation } of pods) {
    const reverted = await world.untilReverted(pod, ORIGINAL);
    expect(reverted.generation).toBe(generation + 1);
  }
}

async function untilStruck(injection: Injection, times: number): Promise<void> {
  await eventually(() => {
    expect(injection.hits).toBeGreaterThanOrEqual(times);
  });
}

/** The fault has left nothing behind: another pod is reverted as if there had been none. */
async function expectWell(): Promise<void> {
  await untilWatching();
  const pods = await boostedPods('afterwards');
  await getReady(pods);
  await expectReverted(pods);
  await eventually(async () => {
    expect(await stuckPods()).toBe(0);
  });
}

async function stuckPods(): Promise<number> {
  const lines = (await controller.metrics.text()).split('\n');
  return lines
    .filter((line) => line.startsWith('startup_cpu_boost_stuck_pods{'))
    .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
}

async function revertsBecause(reason: string): Promise<number> {
  const text = await controller.metrics.text();
  const line = new RegExp(`^startup_cpu_boost_reverts_total\\{reason="${reason}"\\} (\\d+)$`, 'm');
  return Number(line.exec(text)?.[1] ?? 0);
}

describe('pods that get Ready are reverted by one resize each, though', () => {
  it('their watches are cut', async () => {
    const pods = await boostedPods('one', 'two');
    expect(proxy.cutWatches()).toBe(WATCHES);
    await getReady(pods);
    await expectReverted(pods);
    await expectWell();
  });

  it('their watches stall without an end', async () => {
    const pods = await boostedPods('one', 'two');
    expect(proxy.stallWatches()).toBe(WATCHES);
    await getReady(pods);
    await expectReverted(pods);
    await expectWell();
  });

  it('their watches end because their version is too old', async () => {
    const pods = await boostedPods('one', 'two');
    expect(proxy.expireWatches()).toBe(WATCHES);
    await getReady(pods);
    await expectReverted(pods);
    await expectWell();
  });

  it.each<[string, Fault]>([
    ['are refused for their version, by status', { kind: 'Answer', status: 410 }],
    ['are refused for their version, by event', { kind: 'ExpiredEvent' }],
    ['are throttled', { kind: 'Answer', status: 429, retryAfterSeconds: 5 }],
    ['fail', { kind: 'Answer', status: 500 }],
    ['are reset at once', { kind: 'Reset' }],
  ])('new watches %s', async (_what, fault) => {
    const pods = await boostedPods('one', 'two');
    const times = 2 * WATCHES;
    const injection = proxy.inject({ match: { verb: 'watch' }, fault, times });
    proxy.cutWatches();
    await getReady(pods);
    await untilStruck(injection, times);
    await expectReverted(pods);
    await expectWell();
  });

  it('new lists fail', async () => {
    const pods = await boostedPods('one', 'two');
    const fault: Fault = { kind: 'Answer', status: 503 };
    const injection = proxy.inject({ match: { verb: 'list' }, fault, times: 2 * WATCHES });
    proxy.expireWatches();
    await getReady(pods);
    await untilStruck(injection, 2 * WATCHES);
    await expectReverted(pods);
    await expectWell();
  });

  describe.each([
    ['resize', RESIZE],
    ['patch that takes the marker off', CLEAR],
  ])('the %s', (_patch, match) => {
    it.each<[string, Fault]>([
      ['is throttled', { kind: 'Answer', status: 429, retryAfterSeconds: 5 }],
      ['fails', { kind: 'Answer', status: 500 }],
      ['is to come later', { kind: 'Answer', status: 503, retryAfterSeconds: 5 }],
      ['is reset before it is done', { kind: 'Reset' }],
      ['is done, but its answer is lost', { kind: 'LoseAnswer' }],
    ])('%s', async (_what, fault) => {
      const pods = await boostedPods('one', 'two', 'three');
      const injection = proxy.inject({ match, fault, times: 4 });
      await getReady(pods);
      await untilStruck(injection, pods.length);
      await expectReverted(pods);
      injection.remove();
      await expectWell();
    });

    it.each<[string, Fault]>([
      ['is done when nobody waits for it any more', { kind: 'HoldRequest' }],
      ['is done, but answered when nobody waits for it any more', { kind: 'HoldAnswer' }],
    ])('%s', async (_what, fault) => {
      await restartController({ callTimeoutMs: 1_000 });
      const pods = await boostedPods('one', 'two');
      const injection = proxy.inject({ match, fault, times: pods.length });
      await getReady(pods);
      await untilStruck(injection, pods.length);
      await expectReverted(pods);
      injection.release();
      await expectWell();
      await expectReverted(pods);
    });
  });

  it('new watches are too slow', async () => {
    await restartController({ callTimeoutMs: 1_000 });
    const pods = await boostedPods('one', 'two');
    const match: RequestMatch = { verb: 'watch' };
    const injection = proxy.inject({ match, fault: { kind: 'HoldRequest' }, times: WATCHES });
    proxy.cutWatches();
    await getReady(pods);
    await untilStruck(injection, WATCHES);
    await expectReverted(pods);
    injection.release();
    await expectWell();
  });

  it('nobody answers for a while', async () => {
    const pods = await boostedPods('one', 'two');
    await proxy.goDown();
    await getReady(pods);
    await proxy.comeBack();
    await expectReverted(pods);
    await expectWell();
  });

  it('the API server is killed and started again', async () => {
    world.answerResize('halfway', 'Ignore');
    const halfway = await boostedPods('halfway');
    await getReady(halfway);
    for (const { pod } of halfway) {
      await eventually(async () => {
        expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
      });
    }
    const pods = await boostedPods('one', 'two');
    await proxy.goDown();
    await getReady(pods);
    await world.controlPlane.stopApiServer();
    // From now on the controller meets a server that is not there, then one that is not ready.
    await proxy.comeBack();
    await world.controlPlane.startApiServer();
    await expectReverted(pods);
    for (const { pod, generation } of halfway) {
      const { annotations } = await world.read(pod);
      expect(annotations?.has(BOOST_KEY)).toBe(true);
      await world.kubelet.acceptResize(pod);
      await expectReverted([{ pod, generation }]);
    }
    await expectWell();
    expect(await revertsBecause('BoostDeleted')).toBe(0);
  });
});

describe('with an account of its own', () => {
  /** What docs and chart give the controller. */
  const RULES: readonly JsonObject[] = [
    rule('', ['pods'], ['get', 'list', 'watch', 'patch']),
    rule('', ['pods/resize'], ['patch']),
    rule('', ['limitranges', 'resourcequotas'], ['get', 'list', 'watch']),
    rule(STARTUP_CPU_BOOSTS.group, ['startupcpuboosts'], ['get', 'list', 'watch']),
    rule(STARTUP_CPU_BOOSTS.group, ['startupcpuboosts/status'], ['patch']),
    rule('admissionregistration.k8s.io', ['mutatingwebhookconfigurations'], ['list', 'watch']),
  ];

  function rule(apiGroup: string, resources: string[], verbs: string[]): JsonObject {
    return { apiGroups: [apiGroup], resources, verbs };
  }

  let account: ServiceAccount;
  let tokenFile: string;

  beforeEach(async () => {
    account = await ServiceAccount.create(world.controlPlane, namespace, RULES);
    tokenFile = join(world.controlPlane.dir, `${namespace}.token`);
  });

  it('it waits for the rights that were taken away, and goes on when they are back', async () => {
    const { token } = await account.issueToken();
    await writeFile(tokenFile, token);
    await restartController({}, { tokenFile });
    const pods = await boostedPods('one', 'two');
    await account.revoke();
    await getReady(pods);
    await eventually(async () => {
      expect(await stuckPods()).toBe(pods.length);
    });
    proxy.cutWatches();
    await eventually(() => {
      expect(proxy.openWatches()).toBe(0);
    });
    await account.grant();
    await expectReverted(pods);
    await expectWell();
    expect(await revertsBecause('BoostDeleted')).toBe(0);
  });

  it('it takes up a token that replaced one which is refused now', async () => {
    const [first, second] = [await account.issueToken(), await account.issueToken()];
    // As kubelets and editors write it.
    await writeFile(tokenFile, `${first.token}\n`);
    await restartController({}, { tokenFile });
    const pods = await boostedPods('one', 'two');
    await writeFile(tokenFile, `${second.token}\n`);
    await first.refuse();
    proxy.cutWatches();
    await getReady(pods);
    await expectReverted(pods);
    await expectWell();
  });
});

describe('the definition of boosts', () => {
  const DEFINITION: ObjectRef = {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    name: `${STARTUP_CPU_BOOSTS.plural}.${STARTUP_CPU_BOOSTS.group}`,
  };

  async function deleteDefinition(): Promise<void> {
    await world.client.delete(DEFINITION);
    await eventually(async () => {
      expect(await world.client.list(STARTUP_CPU_BOOSTS).catch(failureKind)).toBe('NotFound');
    });
  }

  it.each([
    ['before the eyes of the controller', 'Seen'],
    ['while the controller looks away', 'Missed'],
  ] as const)(
    'is deleted %s: pods revert after the grace, and later boosts are seen',
    async (_how, how) => {
      const pods = await boostedPods('one', 'two');
      if (how === 'Missed') {
        const injection = proxy.inject({ match: BOOSTS, fault: { kind: 'Reset' } });
        proxy.cutWatches(BOOSTS);
        await deleteDefinition();
        injection.remove();
      } else {
        await deleteDefinition();
      }
      try {
        await expectReverted(pods);
        expect(await revertsBecause('BoostDeleted')).toBe(pods.length);
      } finally {
        await installCrds(world.client);
      }
      boost = await world.createBoost(aBoost({ namespace }));
      await expectWell();
    },
  );

  it('is not believed to be gone when only its collection is not found', async () => {
    const pods = await boostedPods('one', 'two');
    const injection = proxy.inject({
      match: { ...BOOSTS, verb: 'list' },
      fault: { kind: 'Answer', status: 404 },
    });
    proxy.expireWatches(BOOSTS);
    await untilStruck(injection, 3);
    await getReady(pods);
    await expectReverted(pods);
    injection.remove();
    await expectWell();
    expect(await revertsBecause('BoostDeleted')).toBe(0);
  });
});

function failureKind(error: unknown): string {
  return error instanceof ApiError ? error.failure.kind : String(error);
}
