/** A thousand cut watches leave nothing behind in the controller's process. */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { aBoost, aPod } from '../support/builders';
import { eventually } from '../support/eventually';
import { FaultProxy } from '../support/faultProxy';
import { leapClock } from '../support/leapClock';
import type { LeapClock } from '../support/leapClock';
import { CONTROLLER_WATCHES, World } from '../support/world';
import type { RunningController } from '../support/world';

const CUTS = 1_000;
/** Caches, pools and compiled code have their size after so many. */
const WARM_UP_CUTS = 300;
/** Sockets of calls that happen to be under way, idle ones, and their timers. */
const TOLERATED_RESOURCES = 20;
/** Noise is up to 1.2 MiB; a forgotten abort listener with what it holds is some 3 KiB for each cut. */
const TOLERATED_BYTES = 2 * 2 ** 20;

let world: World;
let proxy: FaultProxy;
let clock: LeapClock;
let controller: RunningController;

beforeAll(async () => {
  world = await World.start();
  proxy = await FaultProxy.start(world.controlPlane.kubeconfigPath);
  const kubeconfigPath = join(world.controlPlane.dir, 'through-proxy');
  await proxy.writeKubeconfig(kubeconfigPath);
  clock = leapClock();
  controller = await world.startController({}, { kubeconfigPath, clock });
});

afterAll(async () => {
  await controller.stop();
  await proxy.stop();
  await world.stop();
});

interface Footprint {
  /** Sockets, timers and requests to the kernel: what Node waits for, by type. */
  readonly active: Readonly<Record<string, number>>;
  readonly heapBytes: number;
}

function footprint(): Footprint {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
  const active: Record<string, number> = {};
  for (const type of process.getActiveResourcesInfo()) active[type] = (active[type] ?? 0) + 1;
  return { active, heapBytes: process.memoryUsage().heapUsed };
}

async function untilWatching(): Promise<void> {
  await eventually(() => {
    // The longest backoff.
    clock.leap(30_000);
    expect(proxy.openWatches()).toBe(CONTROLLER_WATCHES);
  });
}

async function cut(times: number): Promise<void> {
  for (let cuts = 0; cuts < times;) {
    await untilWatching();
    cuts += proxy.cutWatches();
  }
  await untilWatching();
}

it('leave sockets, timers, queues and memory as they were', async () => {
  const namespace = await world.namespace();
  const boost = await world.createBoost(aBoost({ namespace }));
  const names = Array.from({ length: 20 }, (_, index) => `pod-${index}`);
  const pods = await Promise.all(
    names.map(async (name) => {
      const pod = await world.createBoosted(aPod({ namespace, name }), boost);
      await world.run(pod);
      return pod;
    }),
  );

  await cut(WARM_UP_CUTS);
  const before = footprint();
  await cut(CUTS);
  const after = footprint();

  for (const [type, count] of Object.entries(after.active)) {
    expect([type, count - (before.active[type] ?? 0) < TOLERATED_RESOURCES]).toEqual([type, true]);
  }
  expect(after.heapBytes - before.heapBytes).toBeLessThan(TOLERATED_BYTES);
  expect(await controller.metrics.text()).toMatch(/^startup_cpu_boost_queue_depth 0$/m);
  await Promise.all(pods.map((pod) => world.kubelet.ready(pod)));
  for (const pod of pods) {
    await world.untilReverted(pod, { app: { request: '250m', limit: '1' } });
  }
}, 300_000);
