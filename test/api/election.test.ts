/** Several controllers: all Ready, one acts, and another one takes over whatever happens to it. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LEASES } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { eventually } from '../support/eventually';
import { FaultProxy } from '../support/faultProxy';
import type { PodName } from '../support/kubelet';
import { objectAt } from '../support/objectAt';
import { startProcess } from '../support/processes';
import type { BoostProcess } from '../support/processes';
import { World } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };
const LEASE = { ...LEASES, name: 'startup-cpu-boost-controller' };

let world: World;
let namespace: string;
let boost: JsonObject;
let replicas: BoostProcess[];

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  boost = await world.createBoost(aBoost({ namespace }));
  replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
});

afterEach(async () => {
  await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
});

/** Resolves when it is Ready, which a standby is too. */
function startReplica(kubeconfigPath = world.controlPlane.kubeconfigPath): Promise<BoostProcess> {
  // Each test has a Lease of its own.
  return startProcess('controller', { kubeconfigPath, env: { POD_NAMESPACE: namespace } });
}

async function leads({ metricsUrl }: BoostProcess): Promise<boolean> {
  try {
    const response = await fetch(metricsUrl, { signal: AbortSignal.timeout(2_000) });
    return (await response.text()).includes('\nstartup_cpu_boost_leader 1');
  } catch {
    return false;
  }
}

function specOf(lease: JsonObject): JsonObject {
  return objectAt(lease, 'spec');
}

async function theLeader(among = replicas): Promise<BoostProcess> {
  return eventually(async () => {
    const found = await Promise.all(among.map(async (each) => ((await leads(each)) ? [each] : [])));
    const [leader, ...more] = found.flat();
    if (leader === undefined || more.length > 0) throw new Error(`${found.flat().length} lead`);
    return leader;
  });
}

function without(replica: BoostProcess): BoostProcess[] {
  return replicas.filter((each) => each !== replica);
}

async function startingPod(name: string): Promise<PodName> {
  const pod = await world.createBoosted(aPod({ namespace, name }), boost);
  await world.run(pod);
  return pod;
}

interface Behind {
  readonly leader: BoostProcess;
  readonly standby: BoostProcess;
  /** Between the standby, whose watches are all open, and the API server. */
  readonly proxy: FaultProxy;
}

async function leaderAndStandbyBehindProxy(): Promise<Behind> {
  const leader = await theLeader();
  await Promise.all(without(leader).map((replica) => replica.stop('SIGKILL')));
  const proxy = await FaultProxy.start(world.controlPlane.kubeconfigPath);
  const kubeconfigPath = join(world.controlPlane.dir, 'kubeconfig-proxy');
  await proxy.writeKubeconfig(kubeconfigPath);
  const standby = await startReplica(kubeconfigPath);
  replicas = [leader, standby];
  await eventually(() => {
    expectAllWatches(proxy);
  });
  return { leader, standby, proxy };
}

/** That they are open and bring events. */
function expectAllWatches(proxy: FaultProxy): void {
  // Boosted pods, and those that may be yet to be.
  expect(proxy.openWatches({ resource: 'pods' })).toBe(2);
  expect(proxy.openWatches({ resource: 'startupcpuboosts' })).toBe(1);
  expect(proxy.openWatches({ resource: 'leases' })).toBe(1);
}

/** By one resize, whoever sent it. */
async function expectRevertedOnce(pod: PodName): Promise<void> {
  const { generation = 0 } = await world.read(pod);
  await world.kubelet.ready(pod);
  const reverted = await world.untilReverted(pod, ORIGINAL);
  expect(reverted.generation).toBe(generation + 1);
}

describe('of three controllers', () => {
  it('one leads, and all are Ready', async () => {
    await theLeader();
    const answers = await Promise.all(
      replicas.map(({ healthUrl }) => fetch(`${healthUrl}/readyz`)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await expectRevertedOnce(await startingPod('any'));
  });

  it('another one leads when the leader is asked to stop, without waiting for the lease', async () => {
    const leader = await theLeader();
    const pod = await startingPod('handed-over');
    expect(await leader.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    const next = await theLeader(without(leader));
    await expectRevertedOnce(pod);
    expect(leader.logs().some(({ message }) => message === 'leading no more')).toBe(true);
    expect(next.logs().some(({ message }) => message === 'leading')).toBe(true);
  });

  it('another one leads when the leader is killed', async () => {
    const leader = await theLeader();
    const pod = await startingPod('orphaned');
    await leader.stop('SIGKILL');
    await world.kubelet.ready(pod);
    await theLeader(without(leader));
    await world.untilReverted(pod, ORIGINAL);
  });

  it('a leader that was paused finds that it leads no more when it wakes up', async () => {
    const leader = await theLeader();
    const pod = await startingPod('meanwhile');
    process.kill(leader.pid, 'SIGSTOP');
    try {
      await theLeader(without(leader));
      await expectRevertedOnce(pod);
    } finally {
      process.kill(leader.pid, 'SIGCONT');
    }
    await eventually(async () => {
      expect(await leads(leader)).toBe(false);
    });
    await theLeader();
    await expectRevertedOnce(await startingPod('after'));
  });

  it('one whose watches are silent when it takes over hears at once what it has missed', async () => {
    const { leader, standby, proxy } = await leaderAndStandbyBehindProxy();
    try {
      proxy.stallWatches();
      const pod = await startingPod('never-heard-of');
      await leader.stop('SIGKILL');
      await theLeader([standby]);
      await expectRevertedOnce(pod);
    } finally {
      await standby.stop('SIGKILL');
      await proxy.stop();
    }
  });

  it('a standby notices by the Lease that its watches are silent, and opens them anew', async () => {
    const { standby, proxy } = await leaderAndStandbyBehindProxy();
    try {
      proxy.stallWatches();
      await eventually(() => {
        expectAllWatches(proxy);
      });
      expect(await leads(standby)).toBe(false);
    } finally {
      await standby.stop('SIGKILL');
      await proxy.stop();
    }
  });

  it('one leads again after somebody has deleted the Lease', async () => {
    await theLeader();
    await world.client.delete({ ...LEASE, namespace });
    await eventually(async () => {
      const { spec } = await world.client.get({ ...LEASE, namespace });
      expect(spec).toMatchObject({ leaseDurationSeconds: 6 });
    });
    await theLeader();
    await expectRevertedOnce(await startingPod('later'));
  });

  it('the Lease keeps what others have written on it', async () => {
    await theLeader();
    const metadata = { labels: { owner: 'team' }, annotations: { note: 'kept' } };
    await world.client.patch({ ...LEASE, namespace }, { type: 'merge', body: { metadata } });
    const { renewTime } = specOf(await world.client.get({ ...LEASE, namespace }));
    await eventually(async () => {
      const lease = await world.client.get({ ...LEASE, namespace });
      expect(specOf(lease).renewTime).not.toBe(renewTime);
      expect(lease).toMatchObject({ metadata });
    });
    await Promise.all(replicas.map((replica) => replica.stop('SIGTERM')));
    const released = await world.client.get({ ...LEASE, namespace });
    expect(released).toMatchObject({ metadata, spec: { holderIdentity: '' } });
  });

  it('all stop in order, and the Lease is free at once', async () => {
    await theLeader();
    await Promise.all(replicas.map((replica) => replica.stop('SIGTERM')));
    const { spec } = await world.client.get({ ...LEASE, namespace });
    expect(spec).toMatchObject({ holderIdentity: '' });
  });
});
