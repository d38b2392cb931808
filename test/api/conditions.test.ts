/** No boost without a way back: what the controller finds out, what the status says, what admission does. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SKIPPED_KEY, readPod } from '../../src/boost-engine';
import { LEASES, MUTATING_WEBHOOK_CONFIGURATIONS, PODS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { runAdmission } from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { aBoost, aPod } from '../support/builders';
import { eventually } from '../support/eventually';
import { FaultProxy } from '../support/faultProxy';
import { leapClock } from '../support/leapClock';
import type { LeapClock } from '../support/leapClock';
import { listAt } from '../support/objectAt';
import { startProcess } from '../support/processes';
import type { BoostProcess } from '../support/processes';
import { refuseResizes } from '../support/resizePolicy';
import { ServiceAccount } from '../support/serviceAccount';
import { installPodWebhook, webhookConfigurations } from '../support/webhooks';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

let world: World;
let clock: LeapClock;
let hurrying: NodeJS.Timeout;
let namespace: string;
let boost: JsonObject;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  boost = await world.createBoost(aBoost({ namespace }));
  clock = leapClock();
  // The minute for which an answer counts is over in seconds.
  hurrying = setInterval(() => {
    clock.leap(500);
  }, 20);
});

afterEach(() => {
  clearInterval(hurrying);
});

async function untilCondition(type: string, expected: JsonObject): Promise<void> {
  await eventually(async () => {
    const conditions = listAt(await world.statusOf(boost), 'conditions');
    expect(conditions.find((condition) => condition.type === type)).toMatchObject(expected);
  });
}

interface Admitted {
  readonly cpu: JsonObject;
  readonly skipped: string | undefined;
}

const IS_BOOSTED: Admitted = { cpu: BOOSTED, skipped: undefined };
const isSkipped = (code: string): Admitted => ({ cpu: ORIGINAL, skipped: code });

/** What the API server would store, without storing it. */
async function admitted(): Promise<Admitted> {
  const pod = readPod(
    await world.client.create({ ...PODS, namespace }, aPod({ namespace }), { dryRun: true }),
  );
  return {
    cpu: Object.fromEntries(pod.containers.map(({ name, cpu }) => [name, cpu])),
    skipped: pod.annotations?.get(SKIPPED_KEY),
  };
}

async function untilAdmitted(expected: Admitted): Promise<void> {
  await eventually(async () => {
    expect(await admitted()).toEqual(expected);
  });
}

function rule(apiGroup: string, resources: string[], verbs: string[]): JsonObject {
  return { apiGroups: [apiGroup], resources, verbs };
}

/** What a controller cannot do without. */
const WATCHING = [
  rule('', ['pods', 'limitranges'], ['get', 'list', 'watch']),
  rule(STARTUP_CPU_BOOSTS.group, ['startupcpuboosts'], ['get', 'list', 'watch']),
  rule(STARTUP_CPU_BOOSTS.group, ['startupcpuboosts/status'], ['patch']),
];
const PATCH_PODS = rule('', ['pods'], ['patch']);
const PATCH_RESIZE = rule('', ['pods/resize'], ['patch']);

describe('a controller with an account of its own', () => {
  let account: ServiceAccount;
  let admission: RunningAdmission;
  let controller: RunningController;

  beforeEach(async () => {
    account = await ServiceAccount.create(world.controlPlane, namespace, [
      ...WATCHING,
      PATCH_PODS,
      PATCH_RESIZE,
    ]);
    admission = await runAdmission(world.controlPlane);
    await installPodWebhook(world.client, { ...admission.target, namespaces: [namespace] });
    const kubeconfigPath = await account.kubeconfig();
    controller = await world.startController({}, { kubeconfigPath, clock });
  });

  afterEach(async () => {
    await controller.stop();
    await admission.stop();
  });

  it.each([
    ['pods/resize', [PATCH_PODS], 'ResizeForbidden'],
    ['pods', [PATCH_RESIZE], 'PodPatchForbidden'],
  ])(
    'that may not patch %s says so on its boosts, and nothing is boosted until it may',
    async (what, left, reason) => {
      await untilCondition('Revertible', { status: 'True', reason: 'CanRevert' });
      await untilAdmitted(IS_BOOSTED);
      await account.allow([...WATCHING, ...left]);
      const message = expect.stringContaining(
        `grant its service account the verb patch on ${what}`,
      );
      await untilCondition('Revertible', { status: 'False', reason, message });
      await untilAdmitted(isSkipped('NotRevertible'));
      await account.allow([...WATCHING, PATCH_PODS, PATCH_RESIZE]);
      await untilCondition('Revertible', { status: 'True' });
      await untilAdmitted(IS_BOOSTED);
    },
  );

  it('that may not read webhook configurations does everything else', async () => {
    await untilCondition('Revertible', { status: 'True' });
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
    const conditions = listAt(await world.statusOf(boost), 'conditions');
    expect(conditions.map(({ type }) => type)).toEqual(['Active', 'Revertible']);
  });
});

describe('the first refused resize', () => {
  it('has the controller look at its rights at once', async () => {
    const account = await ServiceAccount.create(world.controlPlane, namespace, [
      ...WATCHING,
      PATCH_PODS,
      PATCH_RESIZE,
    ]);
    const kubeconfigPath = await account.kubeconfig();
    // On the real clock: no answer gets too old during this test.
    const controller = await world.startController({}, { kubeconfigPath });
    try {
      await untilCondition('Revertible', { status: 'True' });
      const pod = await world.createBoosted(aPod({ namespace }), boost);
      await world.run(pod);
      await account.allow([...WATCHING, PATCH_PODS]);
      await account.untilMayPatchResize(false);
      await world.kubelet.ready(pod);
      await untilCondition('Revertible', { status: 'False', reason: 'ResizeForbidden' });
      expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 1 });
    } finally {
      await controller.stop();
    }
  });
});

describe('a resize that a policy refuses', () => {
  it('is shown as stuck, and tried again until the policy goes', async () => {
    const controller = await world.startController({}, { clock });
    try {
      const pod = await world.createBoosted(aPod({ namespace }), boost);
      await world.run(pod);
      const policy = await refuseResizes(world.client, namespace);
      await world.kubelet.ready(pod);
      await eventually(async () => {
        expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 1 });
        expect(await controller.metrics.text()).toContain('stuck_pods{reason="Refused"} 1');
      });
      expect(await world.cpuOf(pod)).toEqual(BOOSTED);
      // The rights are there: others may be boosted, and reverted as soon as the policy goes.
      await untilCondition('Revertible', { status: 'True' });
      await policy.remove();
      await world.untilReverted(pod, ORIGINAL);
      await eventually(async () => {
        expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 0 });
      });
    } finally {
      await controller.stop();
    }
  });
});

describe('a resize that the API server does not know', () => {
  it('is shown as stuck, and tried again until it does', async () => {
    const proxy = await FaultProxy.start(world.controlPlane.kubeconfigPath);
    const kubeconfigPath = join(world.controlPlane.dir, 'through-proxy');
    await proxy.writeKubeconfig(kubeconfigPath);
    const controller = await world.startController({}, { kubeconfigPath, clock });
    try {
      const pod = await world.createBoosted(aPod({ namespace }), boost);
      await world.run(pod);
      const injection = proxy.inject({
        match: { verb: 'patch', resource: 'pods', subresource: 'resize' },
        fault: { kind: 'Answer', status: 404 },
      });
      await world.kubelet.ready(pod);
      await eventually(async () => {
        expect(injection.hits).toBeGreaterThan(1);
        expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 1 });
      });
      injection.remove();
      await world.untilReverted(pod, ORIGINAL);
    } finally {
      await controller.stop();
      await proxy.stop();
    }
  });
});

describe('the webhook configuration of another operator', () => {
  /** As google/kube-startup-cpu-boost installs it. */
  const OTHER = 'kube-startup-cpu-boost-mutating-webhook-configuration';

  it('is told of on every boost while it is there', async () => {
    const other = await world.createBoost(aBoost({ namespace, name: 'other' }));
    const controller = await world.startController();
    try {
      await untilCondition('ConflictingWebhook', { status: 'False', reason: 'NoConflict' });
      const { mutating } = webhookConfigurations({
        url: 'https://127.0.0.1:1',
        caBundle: '',
        namespaces: ['none'],
      });
      const webhooks = listAt(mutating, 'webhooks').map((webhook) => ({
        ...webhook,
        clientConfig: {
          service: { namespace: 'boost', name: 'boost', path: '/mutate-v1-pod' },
        },
      }));
      const body = { ...mutating, metadata: { name: OTHER }, webhooks };
      await world.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, body);
      const message = expect.stringContaining(OTHER);
      await untilCondition('ConflictingWebhook', { status: 'True', message });
      await eventually(async () => {
        const conditions = listAt(await world.statusOf(other), 'conditions');
        expect(conditions).toContainEqual(
          expect.objectContaining({ type: 'ConflictingWebhook', status: 'True' }),
        );
      });
      await world.client.delete({ ...MUTATING_WEBHOOK_CONFIGURATIONS, name: OTHER });
      await untilCondition('ConflictingWebhook', { status: 'False' });
    } finally {
      await controller.stop();
    }
  });
});

describe('without a controller', () => {
  let admission: BoostProcess | undefined;
  let controller: BoostProcess | undefined;

  async function start(role: 'admission' | 'controller', more: Record<string, string> = {}) {
    const { kubeconfigPath } = world.controlPlane;
    const env = { POD_NAMESPACE: namespace, LEASE_DURATION_SECONDS: '5', ...more };
    return startProcess(role, { kubeconfigPath, env });
  }

  async function serve(replica: BoostProcess): Promise<BoostProcess> {
    admission = replica;
    await installPodWebhook(world.client, {
      url: replica.webhookUrl,
      caBundle: replica.caBundle,
      namespaces: [namespace],
    });
    return replica;
  }

  afterEach(async () => {
    await admission?.stop('SIGKILL');
    await controller?.stop('SIGKILL');
    admission = undefined;
    controller = undefined;
  });

  it('nothing is boosted once the grace is over, and everything again when one leads', async () => {
    const { healthUrl } = await serve(
      await start('admission', { NO_CONTROLLER_GRACE_SECONDS: '3' }),
    );
    await untilAdmitted(isSkipped('NoController'));
    controller = await start('controller');
    await untilAdmitted(IS_BOOSTED);
    await controller.stop('SIGKILL');
    await untilAdmitted(isSkipped('NoController'));
    const ready = await fetch(`${healthUrl}/readyz`);
    expect(ready.status).toBe(200);
    controller = await start('controller');
    await untilAdmitted(IS_BOOSTED);
  });

  it('nothing is concluded from a Lease that cannot be read', async () => {
    const account = await ServiceAccount.create(world.controlPlane, namespace, [
      rule(STARTUP_CPU_BOOSTS.group, ['startupcpuboosts'], ['list', 'watch']),
      rule('', ['pods', 'limitranges', 'resourcequotas'], ['list', 'watch']),
    ]);
    const kubeconfigPath = await account.kubeconfig();
    const env = { POD_NAMESPACE: namespace, NO_CONTROLLER_GRACE_SECONDS: '1' };
    const replica = await serve(await startProcess('admission', { kubeconfigPath, env }));
    await untilAdmitted(IS_BOOSTED);
    // It has asked in vain for longer than the grace: its waits double from half a second on.
    await eventually(() => {
      const refusals = replica
        .logs()
        .filter(({ failure, watch }) => failure === 'Forbidden' && isAboutLeases(watch));
      expect(refusals.length).toBeGreaterThan(3);
    });
    expect(await admitted()).toEqual(IS_BOOSTED);
  });

  function isAboutLeases(watch: unknown): boolean {
    return typeof watch === 'string' && watch.includes(LEASES.plural);
  }
});
