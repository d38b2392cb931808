/** Pods that are there get the boost that they missed, or had to wait for, in place, once, and exactly back. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  decideRaise,
  ENDED_KEY,
  parseRecord,
  readPod,
  SKIPPED_KEY,
} from '../../src/boost-engine';
import type { CpuResources, RaiseDecision } from '../../src/boost-engine';
import { PODS, STARTUP_CPU_BOOSTS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../src/kube';
import type { JsonObject, ResourceRef } from '../../src/kube';
import { createLimitRange, createQuota, runAdmission, serveWith } from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { aBoost, aContainer, aPod, RESOURCE_SHAPES, untilSeconds } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { startProcess } from '../support/processes';
import { refuseResizes } from '../support/resizePolicy';
import { installWebhooks } from '../support/webhooks';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

/** Of aContainer, and twice that. */
const ORIGINAL: CpuResources = { request: '250m', limit: '1' };
const BOOSTED: CpuResources = { request: '500m', limit: '2' };

const PRIORITY_CLASSES: ResourceRef = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
};

const POLICIES = { group: 'admissionregistration.k8s.io', version: 'v1' } as const;
const MUTATING_POLICIES: ResourceRef = { ...POLICIES, plural: 'mutatingadmissionpolicies' };
const MUTATING_POLICY_BINDINGS: ResourceRef = {
  ...POLICIES,
  plural: 'mutatingadmissionpolicybindings',
};

let world: World;
let admission: RunningAdmission;
let namespace: string;
const controllers: RunningController[] = [];

/** Nobody answers the webhooks: pods here are created without a boost, unless a test says so. */
beforeAll(async () => {
  world = await World.start();
  admission = await runAdmission(world.controlPlane);
  await breakWebhooks();
});

async function breakWebhooks(): Promise<void> {
  await installWebhooks(world.client, { ...admission.target, url: 'https://127.0.0.1:1' });
  // That one fails where nobody answers, and boosts are made here.
  await world.client.delete({ ...VALIDATING_WEBHOOK_CONFIGURATIONS, name: 'startup-cpu-boost' });
}

afterAll(async () => {
  await admission.stop();
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
});

afterEach(async () => {
  await Promise.all(controllers.splice(0).map((controller) => controller.stop()));
});

async function startController(
  ...options: Parameters<World['startController']>
): Promise<RunningController> {
  const controller = await world.startController(...options);
  controllers.push(controller);
  return controller;
}

const createPod = (overrides: Parameters<typeof aPod>[0] = {}) =>
  world.createPod(aPod({ namespace, ...overrides }));
const createBoost = (overrides: Parameters<typeof aBoost>[0] = {}) =>
  world.createBoost(aBoost({ namespace, ...overrides }));

/** State and reason of the record, the CPU, and the notes that catch-up respects. */
async function look(pod: PodName) {
  const { annotations, containers } = await world.read(pod);
  const parsed = parseRecord(annotations?.get(BOOST_KEY) ?? '');
  const record = parsed.kind === 'Record' ? parsed.record : undefined;
  return {
    cpu: containers[0]?.cpu,
    state: record?.state,
    reason: record?.reason,
    skipped: annotations?.get(SKIPPED_KEY),
    ended: annotations?.get(ENDED_KEY),
  };
}

async function untilRaised(pod: PodName, reason: string): Promise<void> {
  await eventually(async () => {
    expect(await look(pod)).toEqual({
      cpu: BOOSTED,
      state: 'Active',
      reason,
      skipped: undefined,
      ended: undefined,
    });
  });
}

/** Another pod of the same boost, which goes the whole way: by then the first has had its chance. */
async function expectUntouched(pod: PodName, expected: object = {}): Promise<void> {
  const before = await world.read(pod);
  const witness = await createPod({ name: `witness-${randomUUID()}` });
  await world.run(witness);
  await untilRaised(witness, 'CatchUp');
  const after = await world.read(pod);
  expect(after.generation).toBe(before.generation);
  expect(after.annotations).toEqual(before.annotations);
  expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined, ...expected });
}

/** Many pods at once: fails only when none of the rest has got there for as long as `eventually` waits. */
async function untilAll(state: 'Active' | undefined, cpu: CpuResources): Promise<void> {
  let left = Infinity;
  while (left > 0) {
    left = await eventually(async () => {
      const { items } = await world.client.list(PODS, { namespace });
      const now = items.filter((item) => {
        const { containers, annotations } = readPod(item);
        const parsed = parseRecord(annotations?.get(BOOST_KEY) ?? '');
        const isThere =
          parsed.kind === 'Record' ? parsed.record.state === state : state === undefined;
        return !isThere || !isDeepStrictEqual(containers[0]?.cpu, cpu);
      });
      expect(now.length).toBeLessThan(Math.max(left, 1));
      await delay(200);
      return now.length;
    });
  }
}

/** The controller counts when it has the answer, so a moment after the pod can be seen changed. */
async function untilCounted(
  controller: RunningController,
  catchUps: Record<string, number>,
): Promise<void> {
  await eventually(async () => {
    const { values } = await controller.metrics.catchUps.get();
    const counted = values.map(({ labels, value }) => [`${labels.result} ${labels.reason}`, value]);
    expect(Object.fromEntries(counted)).toEqual(catchUps);
  });
}

describe('a pod that was created while no webhook answered', () => {
  it('is raised once its kubelet has taken it in, and gets exactly its own CPU back', async () => {
    const controller = await startController();
    const boost = await createBoost();
    const pod = await createPod();
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined });
    await world.kubelet.bind(pod);
    await world.kubelet.admitted(pod);
    await untilRaised(pod, 'CatchUp');
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        activeContainerBoosts: 1,
        boostedPods: 1,
      });
    });
    await world.kubelet.running(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
    await untilCounted(controller, { 'Raised CatchUp': 1 });
  });

  it('waits while it has no node, or no kubelet has taken it in', async () => {
    await startController();
    await createBoost();
    const pod = await createPod();
    await expectUntouched(pod);
    await world.kubelet.bind(pod);
    await expectUntouched(pod);
    await world.kubelet.running(pod);
    await untilRaised(pod, 'CatchUp');
  });

  it('is found by the controller that takes over when it runs already', async () => {
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    await startController();
    await untilRaised(pod, 'CatchUp');
  });

  it('gets the very values that admission would have given to it', async () => {
    const boost = await createBoost({
      containerPolicies: [
        {
          matchContainers: { type: 'RegexName', value: '^app' },
          percentageIncrease: { value: 33 },
        },
        {
          matchContainers: { type: 'ExactName', value: 'web' },
          fixedResources: { requests: '1500m', limits: '3' },
        },
      ],
    });
    const shapes = Object.values(RESOURCE_SHAPES).slice(0, 4);
    const containers = [
      ...shapes.map((resources, index) => aContainer({ name: `app-${index}`, resources })),
      aContainer({ name: 'web' }),
      aContainer({ name: 'other' }),
    ];
    const pod = await createPod({ containers });
    // As the API server would have shown it to the webhook.
    const created = await world.client.get({ ...PODS, ...pod });
    const decision = decideBoost({
      pod: created,
      namespace,
      boosts: [compileBoost(boost)],
      now: Date.now(),
    });
    const wanted = decision.kind === 'Boost' ? decision.containers : [];
    expect(wanted).toHaveLength(4);
    await world.run(pod);
    await startController();
    await eventually(async () => {
      const { containers: raised } = await world.read(pod);
      for (const { name, to } of wanted) {
        expect(raised.find((container) => container.name === name)?.cpu).toEqual(to);
      }
    });
    const before = Object.fromEntries(
      (await world.read(pod)).containers.map(({ name, cpu }) => [
        name,
        wanted.find((container) => container.name === name)?.from ?? cpu,
      ]),
    );
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, before);
  });

  it('is left alone when it was ready before it could be raised', async () => {
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    await world.kubelet.ready(pod);
    await startController();
    await expectUntouched(pod);
  });

  it('is left alone when its boost would end at once', async () => {
    await createBoost({ durationPolicy: untilSeconds(1) });
    const pod = await createPod();
    await world.kubelet.bind(pod, { at: new Date(Date.now() - 2_000) });
    await world.kubelet.running(pod);
    await startController();
    const lasting = await createPod({ name: 'lasting', labels: { app: 'lasting' } });
    await createBoost({ name: 'lasting', selector: { matchLabels: { app: 'lasting' } } });
    await world.run(lasting);
    await untilRaised(lasting, 'CatchUp');
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined });
  });

  it.each([
    ['a reason for skipping it', SKIPPED_KEY, 'NoCpu'],
    ['the end of the boost that it had', ENDED_KEY, 'LabelRemoved'],
  ])('is left alone when it carries %s', async (_what, key, value) => {
    await createBoost();
    const pod = await createPod({ annotations: { [key]: value } });
    await world.run(pod);
    await startController();
    await expectUntouched(pod);
  });

  it('is left alone when another operator has boosted it', async () => {
    await createBoost();
    const record = JSON.stringify({ state: 'Active', initCPURequests: { app: '250m' } });
    const labels = { app: 'app', [BOOST_KEY]: 'boost' };
    const pod = await createPod({ labels, annotations: { [BOOST_KEY]: record } });
    await world.run(pod);
    await startController();
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({ state: undefined, ended: 'AlreadyOriginal' });
    });
    await expectUntouched(pod);
  });

  it('is left alone in a namespace for which the webhook is not called', async () => {
    await createBoost();
    const other = await world.namespace();
    await world.createBoost(aBoost({ namespace: other }));
    const pod = await world.createPod(aPod({ namespace: other, name: 'excluded' }));
    await world.run(pod);
    await startController({ catchUpExcludedNamespaces: [other] });
    await expectUntouched(pod);
  });

  it('is left alone where raising is switched off', async () => {
    let mayRaise = false;
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    await startController({}, { mayRaise: () => mayRaise });
    const boosted = await world.createBoosted(
      aPod({ namespace, name: 'boosted' }),
      aBoost({ namespace }),
    );
    await world.run(boosted);
    await world.kubelet.ready(boosted);
    await world.untilReverted(boosted, { app: ORIGINAL });
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined });
    mayRaise = true;
    // The next look at its boost finds it.
    await world.client.patch(
      { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
      { type: 'merge', body: { spec: { durationPolicy: untilSeconds(600) } } },
    );
    await untilRaised(pod, 'CatchUp');
  });
});

describe('a boost that comes a moment after its pods', () => {
  it('still boosts them, whether they run already or not', async () => {
    await startController();
    const running = await createPod({ name: 'running' });
    await world.run(running);
    const waiting = await createPod({ name: 'waiting' });
    await createBoost();
    await untilRaised(running, 'CatchUp');
    await world.run(waiting);
    await untilRaised(waiting, 'CatchUp');
    for (const pod of [running, waiting]) {
      await world.kubelet.ready(pod);
      await world.untilReverted(pod, { app: ORIGINAL });
    }
  });

  it('leaves those alone that were there long before', async () => {
    const pod = await createPod();
    await world.run(pod);
    // Timestamps have whole seconds.
    await delay(2_000);
    await createBoost();
    await startController({ catchUpBoostLagMs: 500 });
    await expectUntouched(pod);
  });

  it('and selects them only after an edit boosts them then', async () => {
    await startController();
    const boost = await createBoost({ selector: { matchLabels: { app: 'other' } } });
    const pod = await createPod();
    await world.run(pod);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ activeContainerBoosts: 0 });
    });
    await world.client.patch(
      { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
      { type: 'merge', body: { selector: { matchLabels: { app: 'app' } } } },
    );
    await untilRaised(pod, 'CatchUp');
  });
});

describe('a controller that is killed', () => {
  /** Does on the API server what a controller did before it was killed. */
  async function takeSteps(pod: PodName, boost: JsonObject, steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      const decision: RaiseDecision = decideRaise({
        pod: await world.client.get({ ...PODS, ...pod }),
        boosts: [compileBoost(boost)],
        now: Date.now(),
        settings: {
          maximumBoostMs: 600_000,
          unschedulableGraceMs: 500,
          catchUpMs: 300_000,
          catchUpBoostLagMs: 30_000,
          catchUpExcludedNamespaces: [],
        },
      });
      if (!('patch' in decision)) throw new Error(`${decision.kind} is no step`);
      const ref = { ...PODS, ...pod };
      await world.client.patch(
        decision.kind === 'Raise' ? { ...ref, subresource: 'resize' } : ref,
        { type: 'json', operations: decision.patch },
      );
    }
  }

  const STEPS = [
    ['marking the pod', 1],
    ['raising it', 2],
    ['saying so', 3],
  ] as const;

  it.each(STEPS)(
    'after %s: the next one finishes the raise, and later reverts',
    async (...[, steps]) => {
      const boost = await createBoost();
      const pod = await createPod();
      await world.run(pod);
      await takeSteps(pod, boost, steps);
      await startController();
      await untilRaised(pod, 'CatchUp');
      await world.kubelet.ready(pod);
      await world.untilReverted(pod, { app: ORIGINAL });
    },
  );

  it.each(STEPS)(
    'after %s: the next one takes it back if the pod is ready by then',
    async (...[, steps]) => {
      const boost = await createBoost();
      const pod = await createPod();
      await world.run(pod);
      await takeSteps(pod, boost, steps);
      await world.kubelet.ready(pod);
      await startController();
      await world.untilReverted(pod, { app: ORIGINAL });
      // Whatever becomes of it now, its boost is over.
      await world.kubelet.notReady(pod);
      await expectUntouched(pod, { ended: 'ConditionMet' });
    },
  );

  it.each(STEPS)(
    'after %s: the next one takes it back if the boost is gone by then',
    async (...[, steps]) => {
      const boost = await createBoost();
      const pod = await createPod();
      await world.run(pod);
      await takeSteps(pod, boost, steps);
      await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
      await startController();
      await world.untilReverted(pod, { app: ORIGINAL });
      await createBoost();
      await expectUntouched(pod, { ended: 'BoostDeleted' });
    },
  );

  it('amid a storm leaves no pod behind, and none boosted twice', async () => {
    const pods = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const pod = await createPod({ name: `app-${index}` });
        await world.run(pod);
        return pod;
      }),
    );
    const first = await startProcess('controller', {
      kubeconfigPath: world.controlPlane.kubeconfigPath,
      env: { LEADER_ELECTION: 'false' },
    });
    await createBoost();
    await eventually(async () => {
      const states = await Promise.all(
        pods.slice(0, 5).map(async (pod) => (await look(pod)).state),
      );
      expect(states).toContain('Active');
    });
    await first.stop('SIGKILL');
    await startController();
    await untilAll('Active', BOOSTED);
    await Promise.all(pods.map((pod) => world.kubelet.ready(pod)));
    await untilAll(undefined, ORIGINAL);
    // Raised once and lowered once.
    const generations = (await Promise.all(pods.map((pod) => world.read(pod)))).map(
      ({ generation }) => generation,
    );
    expect(new Set(generations)).toEqual(new Set([3]));
  }, 300_000);
});

describe('a pod that no node had room for with its boost', () => {
  it('is raised once it runs on one, and gets exactly its own CPU back', async () => {
    const controller = await startController();
    const boost = await createBoost();
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({
        cpu: ORIGINAL,
        state: 'Pending',
        reason: 'Unschedulable',
      });
    });
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ activeContainerBoosts: 0 });
    });
    await world.run(pod);
    await untilRaised(pod, 'Unschedulable');
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
    await untilCounted(controller, { 'Raised Unschedulable': 1 });
  });

  it('gets what the boost gives by then', async () => {
    await startController();
    const boost = await createBoost();
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: 'Pending' });
    });
    const policy = {
      matchContainers: { type: 'ExactName', value: 'app' },
      percentageIncrease: { value: 200 },
    };
    await world.client.patch(
      { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
      { type: 'merge', body: { spec: { resourcePolicy: { containerPolicies: [policy] } } } },
    );
    await world.run(pod);
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({
        cpu: { request: '750m', limit: '3' },
        state: 'Active',
      });
    });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it('keeps its own CPU where its boost is over by then', async () => {
    await startController();
    const boost = await createBoost({ durationPolicy: untilSeconds(1) });
    const pod = await world.createBoosted(aPod({ namespace }), boost);
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: 'Pending' });
    });
    await world.kubelet.bind(pod, { at: new Date(Date.now() - 2_000) });
    await world.kubelet.running(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
    expect((await world.read(pod)).generation).toBe(2);
  });

  it('loses its marker where raising is switched off', async () => {
    await startController({}, { mayRaise: () => false });
    const pod = await world.createBoosted(aPod({ namespace }), await createBoost());
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: 'Pending' });
    });
    await world.run(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
    expect(await look(pod)).toMatchObject({ ended: 'Unschedulable' });
  });
});

describe('a node without room for the raise', () => {
  it('that the API server knows of: the pod stays as it is, with the reason on it', async () => {
    const controller = await startController();
    // Of the 16 that the node has.
    const resources = { requests: { cpu: '10' } };
    const pod = await createPod({ containers: [aContainer({ resources })] });
    await createBoost();
    await world.run(pod);
    await eventually(async () => {
      expect(await look(pod)).toEqual({
        cpu: { request: '10' },
        state: undefined,
        reason: undefined,
        skipped: 'NoRoomOnNode',
        ended: undefined,
      });
    });
    expect((await world.read(pod)).generation).toBe(1);
    await untilCounted(controller, { 'GivenUp NoRoomOnNode': 1 });
  });

  it.each(['Defer', 'Infeasible'] as const)(
    'and whose kubelet answers %s: the pod goes back at once, and is not raised again',
    async (answer) => {
      const controller = await startController();
      await createBoost();
      const pod = await createPod({ name: `no-room-${answer.toLowerCase()}` });
      world.answerResize(pod.name, answer);
      await world.run(pod);
      await eventually(async () => {
        expect(await look(pod)).toEqual({
          cpu: ORIGINAL,
          state: undefined,
          reason: undefined,
          skipped: undefined,
          ended: 'NoRoomOnNode',
        });
      });
      world.answerResize(pod.name, 'Accept');
      await controller.stop();
      controllers.splice(0);
      await startController();
      await expectUntouched(pod, { ended: 'NoRoomOnNode' });
      // Raised once, lowered once.
      expect((await world.read(pod)).generation).toBe(3);
    },
  );
});

describe('an API server that does not raise', () => {
  it('since a policy refuses it: the pod stays as it is, with the reason on it, also later', async () => {
    const policy = await refuseResizes(world.client, namespace);
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    const controller = await startController();
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({
        cpu: ORIGINAL,
        state: undefined,
        skipped: 'RaiseRefused',
      });
    });
    await untilCounted(controller, { 'GivenUp RaiseRefused': 1 });
    await policy.remove();
    await expectUntouched(pod, { skipped: 'RaiseRefused' });
  });

  it('since a policy takes every raise away again: it is tried once', async () => {
    await takeRaisesAway();
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    const controller = await startController();
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({
        cpu: ORIGINAL,
        state: undefined,
        skipped: 'RaiseRefused',
      });
    });
    await untilCounted(controller, { 'Raised CatchUp': 1, 'GivenUp RaiseRefused': 1 });
  });

  /** Resolves when a policy sets the CPU of each resize in the namespace to that of aContainer. */
  async function takeRaisesAway(): Promise<void> {
    const name = `no-raises-${namespace}`;
    const set = (list: string, value: string) =>
      `JSONPatch{op: "replace", path: "/spec/containers/0/resources/${list}/cpu", value: "${value}"}`;
    await world.client.create(MUTATING_POLICIES, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        reinvocationPolicy: 'Never',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['UPDATE'],
              resources: ['pods/resize'],
            },
          ],
        },
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: { expression: `[${set('requests', '250m')}, ${set('limits', '1')}]` },
          },
        ],
      },
    });
    await world.client.create(MUTATING_POLICY_BINDINGS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name },
      spec: {
        policyName: name,
        matchResources: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
      },
    });
    const probe = await createPod({ name: 'probe', labels: {} });
    const body = {
      spec: { containers: [{ name: 'app', resources: { requests: { cpu: '300m' } } }] },
    };
    await eventually(async () => {
      const answer = await world.client.patch(
        { ...PODS, ...probe, subresource: 'resize' },
        { type: 'strategic', body },
        { dryRun: true },
      );
      expect(readPod(answer).containers[0]?.cpu).toEqual(ORIGINAL);
    });
  }
});

describe('what a namespace says about CPU', () => {
  it('a quota keeps a value that it counts from being raised', async () => {
    await createQuota(admission, world.controlPlane, namespace, {
      hard: { 'requests.cpu': '250m' },
    });
    await createBoost();
    const pod = await createPod();
    await world.run(pod);
    await startController();
    await eventually(async () => {
      expect(await look(pod)).toMatchObject({
        cpu: { request: '250m', limit: '2' },
        state: 'Active',
      });
    });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it.each<[string, JsonObject]>([
    ['a maximum', { type: 'Container', max: { cpu: '1500m' } }],
    ['a default that would be added to the pod', { type: 'Container', default: { memory: '1Gi' } }],
  ])('a LimitRange with %s keeps the pod as it is', async (_what, limits) => {
    await createBoost();
    const resources = { requests: { cpu: '250m' }, limits: { cpu: '1' } };
    const pod = await createPod({ containers: [aContainer({ resources })] });
    await createLimitRange(admission, world.controlPlane, namespace, limits);
    await world.run(pod);
    await startController();
    const other = await world.namespace();
    await world.createBoost(aBoost({ namespace: other }));
    const witness = await world.createPod(aPod({ namespace: other }));
    await world.run(witness);
    await untilRaised(witness, 'CatchUp');
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined });
    expect((await world.read(pod)).generation).toBe(1);
  });
});

describe('a pod whose priority lets the scheduler remove others for it', () => {
  beforeAll(async () => {
    for (const [name, preemptionPolicy] of [
      ['pushing', 'PreemptLowerPriority'],
      ['waiting', 'Never'],
    ] as const) {
      await world.client.create(PRIORITY_CLASSES, {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name },
        value: 1_000,
        preemptionPolicy,
      });
    }
    await serveWith(admission, world.controlPlane);
  });
  afterAll(breakWebhooks);

  async function known(): Promise<void> {
    await eventually(() => {
      expect([...admission.view(namespace).boosts]).toHaveLength(1);
    });
  }

  it('is created with its own CPU, and raised once it runs on a node', async () => {
    const controller = await startController();
    await createBoost();
    await known();
    const pod = await createPod({ spec: { priorityClassName: 'pushing' } });
    expect(await look(pod)).toMatchObject({
      cpu: ORIGINAL,
      state: 'Pending',
      reason: 'MightPreempt',
    });
    await world.run(pod);
    await untilRaised(pod, 'MightPreempt');
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
    await untilCounted(controller, { 'Raised MightPreempt': 1 });
  });

  it.each<[string, string, JsonObject]>([
    ['its class never preempts', 'waiting', {}],
    ['its boost allows it', 'pushing', { allowPreemption: true }],
  ])('is boosted at creation where %s', async (_why, priorityClassName, spec) => {
    await createBoost({ spec });
    await known();
    const pod = await createPod({ spec: { priorityClassName } });
    expect(await look(pod)).toMatchObject({ cpu: BOOSTED, state: 'Active', reason: undefined });
  });

  it('and that is critical to the system is left as it is', async () => {
    await createBoost();
    await known();
    const pod = await createPod({ spec: { priorityClassName: 'system-node-critical' } });
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, skipped: 'SystemCritical' });
  });

  it('is never raised where it is critical to the system', async () => {
    const pod = await createPod({ spec: { priorityClassName: 'system-node-critical' } });
    await createBoost();
    await world.run(pod);
    await startController();
    const ordinary = await world.namespace();
    const witness = await world.createPod(aPod({ namespace: ordinary }));
    await world.createBoost(aBoost({ namespace: ordinary }));
    await world.run(witness);
    await untilRaised(witness, 'CatchUp');
    expect(await look(pod)).toMatchObject({ cpu: ORIGINAL, state: undefined });
  });
});

describe('a storm', () => {
  it('of 200 pods that missed their boost is worked through, each raised once and reverted', async () => {
    const controller = await startController();
    const names = Array.from({ length: 200 }, (_, index) => `storm-${index}`);
    const pods = await Promise.all(
      names.map(async (name) => {
        const pod = await createPod({ name });
        await world.run(pod);
        return pod;
      }),
    );
    const boost = await createBoost();
    await untilAll('Active', BOOSTED);
    await untilCounted(controller, { 'Raised CatchUp': 200 });
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({
        activeContainerBoosts: 200,
        boostedPods: 200,
      });
    });
    await Promise.all(pods.map((pod) => world.kubelet.ready(pod)));
    await untilAll(undefined, ORIGINAL);
  }, 300_000);
});
