/** What people are told: by kubectl, by the audit log, and while admission is away. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, SKIPPED_KEY, fieldsOf, readPod, textOf } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { runAdmission, serveWith } from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { aBoost, aContainer, aPod, percentageIncrease } from '../support/builders';
import type { BoostOverrides } from '../support/builders';
import { eventually } from '../support/eventually';
import { kubectlCreate } from '../support/kubectl';
import { World } from '../support/world';

const POLICIES = 'spec.resourcePolicy.containerPolicies';

let world: World;
let admission: RunningAdmission;
let namespace: string;

beforeAll(async () => {
  world = await World.start({ audit: true });
  admission = await runAdmission(world.controlPlane);
  await serveWith(admission, world.controlPlane);
});

afterAll(async () => {
  await admission.stop();
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
});

async function createBoost(overrides: BoostOverrides = {}): Promise<void> {
  const boost = readPod(await world.createBoost(aBoost({ namespace, ...overrides })));
  await eventually(() => {
    const names = [...admission.view(namespace).boosts].map(({ name }) => name);
    expect(names).toContain(boost.name);
  });
}

const kubectl = (manifest: JsonObject) =>
  kubectlCreate(world.controlPlane.kubeconfigPath, manifest);

function regex(value: string): JsonObject {
  return { matchContainers: { type: 'RegexName', value }, percentageIncrease: { value: 100 } };
}

describe('kubectl create of a boost', () => {
  it('says nothing about a good one', async () => {
    expect(await kubectl(aBoost({ namespace }))).toEqual({
      code: 0,
      stdout: 'startupcpuboost.autoscaling.x-k8s.io/boost created\n',
      stderr: '',
    });
  });

  it.each<[string, BoostOverrides, string]>([
    [
      'a deprecated field',
      { containerPolicies: [{ containerName: 'app', percentageIncrease: { value: 100 } }] },
      `${POLICIES}[0].containerName is deprecated; write matchContainers: {type: ExactName, value: "app"}`,
    ],
    [
      'a policy that an earlier one shadows',
      { containerPolicies: [regex('.*'), percentageIncrease('app', 50)] },
      `${POLICIES}[1] never applies: containerPolicies[0] matches the same containers and comes first`,
    ],
    [
      'a name that no container can have',
      { containerPolicies: [percentageIncrease('App_*', 50)] },
      `${POLICIES}[0] never applies: no container can be named "App_*"; for a pattern write matchContainers with type RegexName`,
    ],
  ])('warns of %s, and stores it', async (_what, overrides, warning) => {
    expect(await kubectl(aBoost({ namespace, ...overrides }))).toEqual({
      code: 0,
      stdout: 'startupcpuboost.autoscaling.x-k8s.io/boost created\n',
      stderr: `Warning: ${warning}\n`,
    });
  });

  it('warns of another one that selects the same pods, and tells which of them counts', async () => {
    await createBoost({ name: 'first' });
    const { code, stderr } = await kubectl(aBoost({ namespace, name: 'second' }));
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'Warning: boost first selects the same pods; for pods of both only boost first counts: the oldest wins, then the first by name\n',
    });
  });

  it('shows why one is refused that only the webhook can judge', async () => {
    // Go knows this name of a class of characters, and the rule in the definition so lets it through.
    const { code, stdout, stderr } = await kubectl(
      aBoost({ namespace, containerPolicies: [regex('^\\p{Letter}+$')] }),
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(
      `admission webhook "vstartupcpuboost.autoscaling.x-k8s.io" denied the request: ${POLICIES}[0].matchContainers.value must be a regular expression in RE2 syntax: `,
    );
  });
});

describe('the audit log tells of a pod', () => {
  it('its boost, or why it has none', async () => {
    await createBoost();
    await world.createPod(aPod({ namespace, name: 'boosted' }));
    const containers = [aContainer({ resources: {} })];
    await world.createPod(aPod({ namespace, name: 'skipped', containers }));
    const prefix = 'cpuboost.autoscaling.x-k8s.io';
    await eventually(async () => {
      expect(await auditedAnnotations('boosted')).toMatchObject({ [`${prefix}/boost`]: 'boost' });
      expect(await auditedAnnotations('skipped')).toMatchObject({
        [`${prefix}/boost`]: 'boost',
        [`${prefix}/skipped`]: 'NoCpu',
      });
    });
  });

  async function auditedAnnotations(pod: string): Promise<JsonObject> {
    const log = await readFile(join(world.controlPlane.dir, 'logs', 'audit.log'), 'utf8');
    const annotations = log
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => fieldsOf(JSON.parse(line)))
      .filter((event) => {
        const object = fieldsOf(event.get('objectRef'));
        return (
          textOf(event.get('verb')) === 'create' &&
          object.get('namespace') === namespace &&
          object.get('name') === pod
        );
      })
      .map((event) => Object.fromEntries(fieldsOf(event.get('annotations'))));
    return Object.assign({}, ...annotations) as JsonObject;
  }
});

describe('a pod whose annotations leave no room for the record', () => {
  it('is created unboosted', async () => {
    await createBoost();
    const limit = 256 * 1024;
    for (const spare of [0, 60, 100, 400]) {
      const name = `spare-${spare}`;
      const annotations = { note: 'é'.repeat((limit - 'note'.length - spare) / 2) };
      const pod = readPod(
        await world.client.create({ ...PODS, namespace }, aPod({ namespace, name, annotations })),
      );
      expect(pod.containers.map(({ cpu }) => cpu)).toEqual([{ request: '250m', limit: '1' }]);
      expect(pod.labels?.has(BOOST_KEY)).toBe(false);
    }
  });
});

describe('a pod that was copied from a boosted one', () => {
  it('is boosted from the originals, not from the boosted values', async () => {
    await createBoost();
    const ref = { ...PODS, namespace };
    const { metadata, spec } = await world.client.create(ref, aPod({ namespace }));
    const { labels, annotations } = readPod({ metadata });
    const copy = aPod({
      namespace,
      name: 'copy',
      labels: Object.fromEntries(labels ?? []),
      annotations: Object.fromEntries(annotations ?? []),
      spec: Object.fromEntries(fieldsOf(spec)),
    });
    const stored = readPod(await world.client.create(ref, copy));
    expect(stored.containers.map(({ cpu }) => cpu)).toEqual([{ request: '500m', limit: '2' }]);
    expect(stored.annotations?.get(BOOST_KEY)).toBe(annotations?.get(BOOST_KEY));
  });

  it('is boosted from what was changed in the copy', async () => {
    await createBoost();
    const ref = { ...PODS, namespace };
    const first = readPod(await world.client.create(ref, aPod({ namespace })));
    const containers = [
      aContainer({ resources: { requests: { cpu: '300m' }, limits: { cpu: '2' } } }),
    ];
    const copy = aPod({
      namespace,
      name: 'copy',
      annotations: Object.fromEntries(first.annotations ?? []),
      containers,
    });
    const stored = readPod(await world.client.create(ref, copy));
    // The limit is still that of the boost, the request is the author's own.
    expect(stored.containers.map(({ cpu }) => cpu)).toEqual([{ request: '600m', limit: '2' }]);
    expect(JSON.parse(stored.annotations?.get(BOOST_KEY) ?? '')).toMatchObject({
      initCPURequests: { app: '300m' },
      initCPULimits: { app: '1' },
    });
  });
});

describe('while admission is away', () => {
  it('pods are created unboosted, boosts are not stored, and both end with its return', async () => {
    await createBoost();
    await admission.stop();

    const pod = readPod(await world.client.create({ ...PODS, namespace }, aPod({ namespace })));
    expect(pod.containers.map(({ cpu }) => cpu)).toEqual([{ request: '250m', limit: '1' }]);
    expect(pod.annotations?.has(SKIPPED_KEY) ?? false).toBe(false);
    const { code, stderr } = await kubectl(aBoost({ namespace, name: 'other' }));
    expect(code).toBe(1);
    expect(stderr).toContain('failed calling webhook "vstartupcpuboost.autoscaling.x-k8s.io"');

    admission = await runAdmission(world.controlPlane);
    await serveWith(admission, world.controlPlane);
    expect((await kubectl(aBoost({ namespace, name: 'other' }))).code).toBe(0);
    const name = 'later';
    const later = readPod(
      await world.client.create({ ...PODS, namespace }, aPod({ namespace, name })),
    );
    expect(later.containers.map(({ cpu }) => cpu)).toEqual([{ request: '500m', limit: '2' }]);
  });
});
