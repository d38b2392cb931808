/** The controller on a real API server: every boosted pod gets exactly its own CPU back. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import { PODS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import {
  UNTIL_READY,
  aBoost,
  aContainer,
  aPod,
  percentageIncrease,
  untilSeconds,
} from '../support/builders';
import { eventually } from '../support/eventually';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

/** Of aContainer: what every pod here is created with, unless its test says otherwise. */
const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

let world: World;
let controller: RunningController;
let namespace: string;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  controller = await world.startController();
});

afterEach(async () => {
  await controller.stop();
});

describe('a boost ends', () => {
  it('when the pod is Ready, by one resize and without a restart', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    const boosted = await world.read(pod);

    await world.kubelet.ready(pod);

    const reverted = await world.untilReverted(pod, ORIGINAL);
    expect(reverted.uid).toBe(boosted.uid);
    expect(reverted.generation).toBe((boosted.generation ?? 0) + 1);
    const stored = await world.client.get({ ...PODS, ...pod });
    expect(stored.status).toMatchObject({ containerStatuses: [{ restartCount: 0 }] });
  });

  it('when the fixed duration is over, though the pod never got Ready', async () => {
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: untilSeconds(2) }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when the pod is Ready, long before the fixed duration is over', async () => {
    const durationPolicy = { ...UNTIL_READY, ...untilSeconds(3_600) };
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when the fixed duration is over before the pod is Ready', async () => {
    const durationPolicy = { ...UNTIL_READY, ...untilSeconds(1) };
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when the longest time is over, whatever its policy waits for', async () => {
    await controller.stop();
    controller = await world.startController({ maximumBoostMs: 1_000 });
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when the boost is deleted', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when the boost is edited so that it is over already', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.client.patch(
      { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
      {
        type: 'merge',
        body: { spec: { durationPolicy: { podCondition: null, ...untilSeconds(1) } } },
      },
    );
    await world.untilReverted(pod, ORIGINAL);
  });

  it('when somebody takes the label off the pod', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.client.patch(
      { ...PODS, ...pod },
      { type: 'merge', body: { metadata: { labels: { [BOOST_KEY]: null } } } },
    );
    await world.untilReverted(pod, ORIGINAL);
  });

  it('before the pod has a node', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
    await world.untilReverted(pod, ORIGINAL);
  });
});

describe('a boost goes on', () => {
  it('while the pod is not Ready', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace, name: 'starting' }), boost);
    const other = await world.createBoosted(aPod({ namespace, name: 'ready' }), boost);
    await world.run(pod);
    await world.run(other);
    await world.kubelet.ready(other);
    await world.untilReverted(other, ORIGINAL);
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
  });

  it('when the boost is deleted and created again within the grace', async () => {
    await controller.stop();
    controller = await world.startController({ boostDeletedGraceMs: 2_000 });
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace, name: 'kept' }), boost);
    await world.run(pod);
    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
    await world.createBoost(aBoost({ namespace }));

    // A boost that is deleted later has had its whole grace when the first one's is over too.
    const later = await world.createBoost(aBoost({ namespace, name: 'later' }));
    const gone = await world.createBoosted(aPod({ namespace, name: 'gone' }), later);
    await world.run(gone);
    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'later' });
    await world.untilReverted(gone, ORIGINAL);
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
  });
});

describe('a controller that died is replaced by one that carries on', () => {
  it('with a pod that got Ready meanwhile', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await controller.stop();
    await world.kubelet.ready(pod);
    controller = await world.startController();
    await world.untilReverted(pod, ORIGINAL);
  });

  it('with a pod that lost its label meanwhile', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await controller.stop();
    await world.client.patch(
      { ...PODS, ...pod },
      { type: 'merge', body: { metadata: { labels: { [BOOST_KEY]: null } } } },
    );
    controller = await world.startController();
    await world.untilReverted(pod, ORIGINAL);
  });

  it('between the two patches of a revert, without a second resize', async () => {
    world.answerResize('halfway', 'Ignore');
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace, name: 'halfway' }), boost);
    await world.run(pod);
    const { generation = 0 } = await world.read(pod);
    await world.kubelet.ready(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
    });
    await controller.stop();
    expect((await world.read(pod)).annotations?.has(BOOST_KEY)).toBe(true);

    controller = await world.startController();
    await world.kubelet.acceptResize(pod);

    const reverted = await world.untilReverted(pod, ORIGINAL);
    expect(reverted.generation).toBe(generation + 1);
  });

  it('with a boost that was deleted meanwhile', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await controller.stop();
    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
    controller = await world.startController();
    await world.untilReverted(pod, ORIGINAL);
  });

  it('with a fixed duration that was over while nobody looked', async () => {
    const boost = await world.createBoost(aBoost({ namespace, durationPolicy: untilSeconds(1) }));
    await controller.stop();
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.kubelet.bind(pod, { at: new Date(Date.now() - 60_000) });
    await world.kubelet.running(pod);
    controller = await world.startController();
    await world.untilReverted(pod, ORIGINAL);
  });
});

describe('only what the boost raised is lowered', () => {
  it('in a pod with two boosted containers and one that is not', async () => {
    const containers = [
      aContainer({ name: 'app' }),
      aContainer({ name: 'worker', resources: { requests: { cpu: '100m' } } }),
      aContainer({ name: 'proxy', resources: { limits: { cpu: '300m' } } }),
    ];
    const boost = await world.createBoost(
      aBoost({
        namespace,
        containerPolicies: [percentageIncrease('app', 100), percentageIncrease('worker', 50)],
      }),
    );
    const pod = await world.createBoosted(aPod({ namespace, containers }), boost);
    await world.run(pod);
    expect(await world.cpuOf(pod)).toEqual({
      ...BOOSTED,
      worker: { request: '150m' },
      proxy: { request: '300m', limit: '300m' },
    });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, {
      ...ORIGINAL,
      worker: { request: '100m' },
      proxy: { request: '300m', limit: '300m' },
    });
  });

  it('when somebody else has resized the pod meanwhile: their value stays', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    const resources = { limits: { cpu: '3' } };
    await world.client.patch(
      { ...PODS, ...pod, subresource: 'resize' },
      { type: 'strategic', body: { spec: { containers: [{ name: 'app', resources }] } } },
    );
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '250m', limit: '3' } });
  });

  it('in a Guaranteed pod, which keeps its class', async () => {
    const resources = { cpu: '500m', memory: '64Mi' };
    const containers = [aContainer({ resources: { requests: resources, limits: resources } })];
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace, containers }), boost);
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: { request: '500m', limit: '500m' } });
    const stored = await world.client.get({ ...PODS, ...pod });
    expect(stored.status).toMatchObject({ qosClass: 'Guaranteed' });
  });
});

describe('a pod that google/kube-startup-cpu-boost has boosted', () => {
  const upstreamPod = (limits: { readonly cpu?: string }) =>
    aPod({
      namespace,
      labels: { app: 'app', [BOOST_KEY]: 'boost' },
      annotations: {
        [BOOST_KEY]: JSON.stringify({
          timestamp: '2026-01-02T03:04:05.678901234+01:00',
          initCPURequests: { app: '250m' },
          initCPULimits: { app: '1' },
        }),
      },
      containers: [aContainer({ resources: { requests: { cpu: '500m' }, limits } })],
    });

  it('gets its CPU back', async () => {
    await world.createBoost(aBoost({ namespace }));
    const pod = await world.createPod(upstreamPod({ cpu: '2' }));
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('gets the limit back that was removed for the boost', async () => {
    await world.createBoost(aBoost({ namespace }));
    const pod = await world.createPod(upstreamPod({}));
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  });

  it('gets its CPU back when its boost is not there any more', async () => {
    const pod = await world.createPod(upstreamPod({ cpu: '2' }));
    await world.run(pod);
    await world.untilReverted(pod, ORIGINAL);
  });
});

describe('the status of a boost', () => {
  it('counts what is boosted and what was, and tells its policy', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const one = await world.createBoosted(aPod({ namespace, name: 'one' }), boost);
    await world.createBoosted(aPod({ namespace, name: 'two' }), boost);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        policy: '+100%',
        until: 'Ready',
        activeContainerBoosts: 2,
        totalContainerBoosts: 2,
        conditions: [
          { type: 'Active', status: 'True', reason: 'Ready' },
          { type: 'Revertible', status: 'True', reason: 'CanRevert' },
          { type: 'ConflictingWebhook', status: 'False', reason: 'NoConflict' },
        ],
      });
    });
    await world.run(one);
    await world.kubelet.ready(one);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        activeContainerBoosts: 1,
        totalContainerBoosts: 2,
        boostedPods: 2,
        revertedPods: 1,
        stuckPods: 0,
      });
    });
  });

  it('goes on counting after the controller was replaced', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    await world.createBoosted(aPod({ namespace, name: 'before' }), boost);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ totalContainerBoosts: 1 });
    });
    await controller.stop();
    await world.createBoosted(aPod({ namespace, name: 'meanwhile' }), boost);
    controller = await world.startController();
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        activeContainerBoosts: 2,
        totalContainerBoosts: 2,
      });
    });
  });

  it('shows a pod whose kubelet refuses the revert, until it does not any more', async () => {
    world.answerResize('refused', 'Infeasible');
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace, name: 'refused' }), boost);
    await world.run(pod);
    await world.kubelet.ready(pod);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 1 });
    });
    expect(await controller.metrics.text()).toContain(
      'startup_cpu_boost_stuck_pods{reason="Infeasible"} 1',
    );
    await world.kubelet.acceptResize(pod);
    await world.untilReverted(pod, ORIGINAL);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 0, activeContainerBoosts: 0 });
    });
  });

  it('forgets a pod that was deleted while it was boosted', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ activeContainerBoosts: 1 });
    });
    await world.client.delete({ ...PODS, ...pod });
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        activeContainerBoosts: 0,
        totalContainerBoosts: 1,
        revertedPods: 1,
      });
    });
  });
});

describe('many at once', () => {
  it('100 pods that get Ready together are all reverted, by nothing but their events', async () => {
    const boost = await world.createBoost(aBoost({ namespace }));
    const names = Array.from({ length: 100 }, (_, index) => `pod-${index}`);
    const pods = await Promise.all(
      names.map(async (name) => {
        const pod = await world.createBoosted(aPod({ namespace, name }), boost);
        await world.run(pod);
        return pod;
      }),
    );
    await Promise.all(pods.map((pod) => world.kubelet.ready(pod)));
    for (const pod of pods) await world.untilReverted(pod, ORIGINAL);
    expect(await controller.metrics.text()).toContain(
      'startup_cpu_boost_reverts_total{reason="ConditionMet"} 100',
    );
  });
});
