/** Do no harm: whatever the rules of a namespace are, a pod is created with us that is created without us. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, SKIPPED_KEY, fieldsOf, parseRecord, readPod } from '../../src/boost-engine';
import type { ContainerSkipCode, CpuResources, PodSkipCode } from '../../src/boost-engine';
import { LIMIT_RANGES, PODS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../src/kube';
import type { JsonObject, ResourceRef } from '../../src/kube';
import { customResourceDefinition } from '../../src/resources/customResourceDefinition';
import {
  callsOf,
  createLimitRange,
  createQuota,
  runAdmission,
  serveWith,
} from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { RESOURCE_SHAPES, aBoost, aContainer, aPod, percentageIncrease } from '../support/builders';
import type { BoostOverrides, ResourceLists } from '../support/builders';
import { installCrds } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { World } from '../support/world';
import type { RunningController } from '../support/world';

type SkipCode = PodSkipCode | ContainerSkipCode;

/** Of aContainer, and twice that. */
const ORIGINAL = { request: '250m', limit: '1' };
const BOOSTED = { request: '500m', limit: '2' };

const PRIORITY_CLASSES: ResourceRef = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
};

const DEFINITIONS: ResourceRef = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};

let world: World;
let admission: RunningAdmission;
let namespace: string;

beforeAll(async () => {
  world = await World.start();
  admission = await runAdmission(world.controlPlane);
  await serveWith(admission, world.controlPlane);
  await world.client.create(PRIORITY_CLASSES, {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 1_000,
  });
});

afterAll(async () => {
  await admission.stop();
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
});

/** A boost that admission knows of. */
async function createBoost(overrides: BoostOverrides = {}): Promise<JsonObject> {
  const boost = await world.createBoost(aBoost({ namespace, ...overrides }));
  await eventually(() => {
    const names = [...admission.view(namespace).boosts].map(({ name }) => name);
    expect(names).toContain(readPod(boost).name);
  });
  return boost;
}

const limitRange = (limits: JsonObject) =>
  createLimitRange(admission, world.controlPlane, namespace, limits);

const quota = (hard: Readonly<Record<string, string>>, scopes: JsonObject = {}) =>
  createQuota(admission, world.controlPlane, namespace, { hard, ...scopes });

interface Outcome {
  readonly cpu: Readonly<Record<string, CpuResources>>;
  readonly boost?: string;
  readonly skipped?: string;
}

function outcomeOf(pod: JsonObject): Outcome {
  const { containers, labels, annotations } = readPod(pod);
  const boost = labels?.get(BOOST_KEY);
  const skipped = annotations?.get(SKIPPED_KEY);
  // Neither without the other.
  expect(annotations?.has(BOOST_KEY) ?? false).toBe(boost !== undefined);
  return {
    cpu: Object.fromEntries(containers.map(({ name, cpu }) => [name, cpu])),
    ...(boost === undefined ? {} : { boost }),
    ...(skipped === undefined ? {} : { skipped }),
  };
}

async function created(pod: JsonObject): Promise<Outcome> {
  return outcomeOf(await world.client.create({ ...PODS, namespace }, pod));
}

function unboosted(skipped: SkipCode): Outcome {
  return { cpu: { app: ORIGINAL }, skipped };
}

function boosted(cpu: CpuResources = BOOSTED): Outcome {
  return { cpu: { app: cpu }, boost: 'boost' };
}

/** What a boost without the rule would have brought about: no boost selects this pod. */
async function expectRefused(...resources: readonly ResourceLists[]): Promise<void> {
  const containers = resources.map((each, index) =>
    aContainer({ name: `app-${index}`, resources: each }),
  );
  const pod = aPod({ namespace, name: 'too-large', labels: {}, containers });
  await eventually(async () => {
    await expect(
      world.client.create({ ...PODS, namespace }, pod, { dryRun: true }),
    ).rejects.toMatchObject({ failure: { kind: 'Forbidden' } });
  });
}

const TWICE: ResourceLists = { requests: { cpu: '500m' }, limits: { cpu: '2' } };

describe('a LimitRange', () => {
  it('with a maximum for each container keeps the boost from exceeding it', async () => {
    await limitRange({ type: 'Container', max: { cpu: '1500m' } });
    await createBoost();
    await expectRefused(TWICE);
    expect(await created(aPod({ namespace }))).toEqual(unboosted('LimitRangeExceeded'));
  });

  it('with a maximum that is just reached is no reason against a boost', async () => {
    await limitRange({ type: 'Container', max: { cpu: '2' } });
    await createBoost();
    expect(await created(aPod({ namespace }))).toEqual(boosted());
  });

  it('with a maximum for a whole pod lets as many containers be boosted as fit', async () => {
    await limitRange({ type: 'Pod', max: { cpu: '3' } });
    await createBoost({
      containerPolicies: [
        {
          matchContainers: { type: 'RegexName', value: '.*' },
          percentageIncrease: { value: 100 },
        },
      ],
    });
    await expectRefused(TWICE, TWICE);
    const containers = [aContainer(), aContainer({ name: 'worker' })];
    expect(await created(aPod({ namespace, containers }))).toEqual({
      cpu: { app: BOOSTED, worker: ORIGINAL },
      boost: 'boost',
    });
  });

  it('with a maximum quotient of limit and request is kept to', async () => {
    await limitRange({ type: 'Container', maxLimitRequestRatio: { cpu: '4' } });
    await createBoost({
      containerPolicies: [
        {
          matchContainers: { type: 'ExactName', value: 'app' },
          fixedResources: { requests: '300m', limits: '3' },
        },
        percentageIncrease('even', 100),
      ],
    });
    await expectRefused({ requests: { cpu: '300m' }, limits: { cpu: '3' } });
    expect(await created(aPod({ namespace }))).toEqual(unboosted('LimitRangeExceeded'));
    const even = aPod({ namespace, name: 'even', containers: [aContainer({ name: 'even' })] });
    expect(await created(even)).toEqual({ cpu: { even: BOOSTED }, boost: 'boost' });
  });

  it('with default limits makes them the original, which the boost starts from', async () => {
    await limitRange({ type: 'Container', default: { cpu: '500m' } });
    await createBoost();
    const containers = [aContainer({ resources: RESOURCE_SHAPES['request only'] })];
    expect(await created(aPod({ namespace, containers }))).toEqual(
      boosted({ request: '500m', limit: '1' }),
    );
  });

  it('with default limits below the boosted request keeps the boost from making the pod invalid', async () => {
    await limitRange({ type: 'Container', default: { cpu: '500m' } });
    await createBoost({
      containerPolicies: [
        {
          matchContainers: { type: 'ExactName', value: 'app' },
          fixedResources: { requests: '2' },
        },
      ],
    });
    const containers = [aContainer({ resources: RESOURCE_SHAPES['request only'] })];
    expect(await created(aPod({ namespace, containers }))).toEqual({
      cpu: { app: { request: '250m', limit: '500m' } },
      skipped: 'RequestAboveLimit',
    });
  });
});

describe('a ResourceQuota that the pod itself uses up', () => {
  // What the pod takes is all there is: any boost of that value would have the pod refused.
  it.each<[string, Readonly<Record<string, string>>, Outcome]>([
    ['of requests.cpu', { 'requests.cpu': '250m' }, boosted({ request: '250m', limit: '2' })],
    ['of cpu', { cpu: '250m' }, boosted({ request: '250m', limit: '2' })],
    ['of limits.cpu', { 'limits.cpu': '1' }, boosted({ request: '500m', limit: '1' })],
    [
      'of requests.cpu and limits.cpu',
      { 'requests.cpu': '250m', 'limits.cpu': '1' },
      unboosted('QuotaPresent'),
    ],
  ])('%s: only what it does not count is raised', async (_what, hard, expected) => {
    await quota(hard);
    await createBoost();
    await expectRefused(TWICE);
    expect(await created(aPod({ namespace }))).toEqual(expected);
  });

  it('keeps a Guaranteed pod as it is, whose request cannot be raised alone', async () => {
    await quota({ 'limits.cpu': '500m' });
    await createBoost();
    const containers = [aContainer({ resources: RESOURCE_SHAPES.Guaranteed })];
    expect(await created(aPod({ namespace, containers }))).toEqual({
      cpu: { app: { request: '500m', limit: '500m' } },
      skipped: 'QuotaPresent',
    });
  });

  it('and counts no CPU is no reason against a boost', async () => {
    await quota({ pods: '1', 'requests.memory': '64Mi' });
    await createBoost();
    expect(await created(aPod({ namespace }))).toEqual(boosted());
  });
});

describe('a ResourceQuota with a scope counts only the pods of its scope', () => {
  const HARD = { 'requests.cpu': '250m', 'limits.cpu': '1' };
  const priority = (operator: string, values: readonly string[] = []): JsonObject => ({
    scopeSelector: {
      matchExpressions: [
        { scopeName: 'PriorityClass', operator, ...(values.length === 0 ? {} : { values }) },
      ],
    },
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['NotTerminating', { scopes: ['NotTerminating'] }, {}, { activeDeadlineSeconds: 3_600 }],
    ['Terminating', { scopes: ['Terminating'] }, { activeDeadlineSeconds: 3_600 }, {}],
    ['PriorityClass In', priority('In', ['high']), { priorityClassName: 'high' }, {}],
    ['PriorityClass NotIn', priority('NotIn', ['high']), {}, { priorityClassName: 'high' }],
    ['PriorityClass Exists', priority('Exists'), { priorityClassName: 'high' }, {}],
    ['PriorityClass DoesNotExist', priority('DoesNotExist'), {}, { priorityClassName: 'high' }],
  ])('%s', async (_scope, scopes, within, outside) => {
    await quota(HARD, scopes);
    await createBoost({ spec: { allowPreemption: true } });
    // First the pod that is not counted: it must leave the quota as it is.
    expect(await created(aPod({ namespace, name: 'outside', spec: outside }))).toEqual(boosted());
    expect(await created(aPod({ namespace, name: 'within', spec: within }))).toEqual(
      unboosted('QuotaPresent'),
    );
  });

  it('NotBestEffort', async () => {
    await quota(HARD, { scopes: ['NotBestEffort'] });
    await createBoost();
    expect(await created(aPod({ namespace }))).toEqual(unboosted('QuotaPresent'));
  });

  it('with a scope that nobody here knows counts every pod, which does no harm', async () => {
    await quota(HARD, {
      scopeSelector: {
        matchExpressions: [{ scopeName: 'CrossNamespacePodAffinity', operator: 'Exists' }],
      },
    });
    await createBoost();
    expect(await created(aPod({ namespace }))).toEqual(unboosted('QuotaPresent'));
  });
});

describe('a pod that could not be given its CPU back is created as it is', () => {
  it('since its QoS class would change', async () => {
    await createBoost({
      containerPolicies: [
        {
          matchContainers: { type: 'ExactName', value: 'app' },
          fixedResources: { requests: '1', limits: '1' },
        },
      ],
    });
    const resources: ResourceLists = {
      requests: { cpu: '250m', memory: '64Mi' },
      limits: { cpu: '1', memory: '64Mi' },
    };
    const pod = aPod({ namespace, containers: [aContainer({ resources })] });
    const stored = await world.client.create({ ...PODS, namespace }, pod);
    expect(outcomeOf(stored)).toEqual(unboosted('WouldChangeQosClass'));
    expect(fieldsOf(stored.status).get('qosClass')).toBe('Burstable');
  });

  it.each<[string, SkipCode, JsonObject]>([
    ['a Windows pod', 'WindowsPod', { os: { name: 'windows' } }],
    ['a pod for Windows nodes', 'WindowsPod', { nodeSelector: { 'kubernetes.io/os': 'windows' } }],
    ['a pod that names its node', 'NodeNameSet', { nodeName: 'player' }],
    [
      'a pod with a resource claim',
      'ResourceClaims',
      { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] },
    ],
    [
      'a pod with resources of its own',
      'PodLevelResources',
      { resources: { requests: { cpu: '1' }, limits: { cpu: '2' } } },
    ],
  ])('%s', async (_what, code, spec) => {
    await createBoost();
    expect(await created(aPod({ namespace, spec }))).toEqual(unboosted(code));
  });

  it('a container that uses a resource claim', async () => {
    await createBoost();
    const resources = { ...RESOURCE_SHAPES['request and limit'], claims: [{ name: 'gpu' }] };
    const spec = { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] };
    const containers = [aContainer({ resources })];
    expect(await created(aPod({ namespace, containers, spec }))).toEqual(
      unboosted('ResourceClaims'),
    );
  });

  it('the mirror of a static pod, which costs no call and gets no mark', async () => {
    await createBoost();
    const before = await callsOf(admission);
    const mirror = aPod({
      namespace,
      annotations: { 'kubernetes.io/config.mirror': 'hash' },
      spec: { nodeName: 'player' },
    });
    expect(await created(mirror)).toEqual({ cpu: { app: ORIGINAL } });
    expect(await callsOf(admission)).toBe(before);
  });
});

describe('two boosts for one pod', () => {
  let other: RunningAdmission;
  beforeAll(async () => {
    other = await runAdmission(world.controlPlane);
  });
  afterAll(async () => {
    await serveWith(admission, world.controlPlane);
    await other.stop();
  });

  const ORDERS = [
    ['a', 'b'],
    ['b', 'a'],
  ] as const;

  it.each(ORDERS)('count once, the same on each replica: %s before %s', async (...names) => {
    const boosts: JsonObject[] = [];
    for (const name of names) boosts.push(await createBoost({ name }));
    // Another replica, and one that has read the boosts in the order of a list.
    const late = await runAdmission(world.controlPlane);
    await eventually(() => {
      expect([...other.view(namespace).boosts]).toHaveLength(2);
    });
    const [first] = boosts.map(readPod).sort(byAgeThenName);
    for (const [index, replica] of [admission, other, late].entries()) {
      await serveWith(replica, world.controlPlane);
      const { boost } = await created(aPod({ namespace, name: `app-${index}` }));
      expect(boost).toBe(first?.name);
    }
    await serveWith(admission, world.controlPlane);
    await late.stop();
  });

  function byAgeThenName(
    a: { readonly createdAt: number | undefined; readonly name: string | undefined },
    b: { readonly createdAt: number | undefined; readonly name: string | undefined },
  ): number {
    const age = (a.createdAt ?? 0) - (b.createdAt ?? 0);
    return age === 0 ? (a.name ?? '').localeCompare(b.name ?? '') : age;
  }
});

describe('a boost whose name is too long for a label', () => {
  const name = 'a'.repeat(64);

  it('is refused', async () => {
    await expect(world.createBoost(aBoost({ namespace, name }))).rejects.toMatchObject({
      failure: { kind: 'Invalid' },
    });
  });

  it('boosts nothing where it is stored already, and its pods are created', async () => {
    await withoutValidation(async () => {
      await eventually(() => world.createBoost(aBoost({ namespace, name })));
    });
    await eventually(() => {
      expect([...admission.view(namespace).boosts]).toMatchObject([{ name, kind: 'Invalid' }]);
    });
    expect(await created(aPod({ namespace }))).toEqual({ cpu: { app: ORIGINAL } });
  });

  /** As before an upgrade: no rules in the definition, no webhook. */
  async function withoutValidation(act: () => Promise<void>): Promise<void> {
    const { metadata, spec } = customResourceDefinition();
    const definition = { ...DEFINITIONS, name: metadata.name };
    const versions = spec.versions.map((version) => ({
      ...version,
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    }));
    await world.client.delete({ ...VALIDATING_WEBHOOK_CONFIGURATIONS, name: 'startup-cpu-boost' });
    await world.client.patch(definition, { type: 'merge', body: { spec: { versions } } });
    try {
      await act();
    } finally {
      await installCrds(world.client);
      await serveWith(admission, world.controlPlane);
    }
  }
});

describe('a boost that ends', () => {
  let controller: RunningController;
  beforeEach(async () => {
    controller = await world.startController();
  });
  afterEach(async () => {
    await controller.stop();
  });

  it('waits where a LimitRange of a later day would add a limit for ever', async () => {
    const boost = await createBoost();
    const containers = [aContainer({ resources: RESOURCE_SHAPES['request only'] })];
    const pod = await world.createPod(aPod({ namespace, containers }));
    await world.run(pod);
    await limitRange({ type: 'Container', default: { cpu: '2' } });
    await world.kubelet.ready(pod);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 1 });
    });
    expect(await controller.metrics.text()).toContain(
      'startup_cpu_boost_stuck_pods{reason="LimitRangeWouldChangePod"} 1',
    );
    expect(await world.cpuOf(pod)).toEqual({ app: { request: '500m' } });

    await world.client.delete({ ...LIMIT_RANGES, namespace, name: 'limits' });
    await world.untilReverted(pod, { app: { request: '250m' } });
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ stuckPods: 0, activeContainerBoosts: 0 });
    });
  });

  it('lets a pod run that no node has room for with it', async () => {
    await createBoost();
    const pod = await world.createPod(aPod({ namespace }));
    expect(await world.cpuOf(pod)).toEqual({ app: BOOSTED });
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual({ app: ORIGINAL });
      expect(parseRecord((await world.read(pod)).annotations?.get(BOOST_KEY) ?? '')).toMatchObject({
        kind: 'Record',
        record: { state: 'Pending' },
      });
    });
    await world.run(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual({ app: BOOSTED });
    });
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it('stays with a pod that waits for anything but CPU', async () => {
    await createBoost();
    const pod = await world.createPod(aPod({ namespace, name: 'memory' }));
    await world.kubelet.findsNoNode(pod, '0/1 nodes are available: 1 Insufficient memory.');
    // By the time that this one is through, the first had its chance as well.
    const other = await world.createPod(aPod({ namespace, name: 'cpu' }));
    await world.kubelet.findsNoNode(other);
    await eventually(async () => {
      expect(await world.cpuOf(other)).toEqual({ app: ORIGINAL });
    });
    expect(await world.cpuOf(pod)).toEqual({ app: BOOSTED });
  });
});
