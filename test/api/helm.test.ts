/** The chart with real Helm: install, upgrade, rollback and uninstall, and what each of them leaves. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { BOOST_KEY, fieldsOf, itemsOf, readMetadata } from '../../src/boost-engine';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  SECRETS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { customResourceDefinition } from '../../src/resources';
import { aBoost } from '../support/builders';
import { CHART, templateChart } from '../support/chart';
import { eventually } from '../support/eventually';
import { done } from '../support/helm';
import {
  BOOSTED,
  FULLNAME,
  Installation,
  NAMESPACE,
  ORIGINAL,
  RELEASE,
} from '../support/installation';
import { kubectl } from '../support/kubectl';
import { objectAt } from '../support/objectAt';
import { nameOf, onlyOne } from '../support/release';
import { refuseResizes } from '../support/resizePolicy';
import { upstreamDefinition } from '../support/upstream';
import { JOBS } from '../support/workloadPlayer';

/** Helm waits for the real time that processes, elections and hooks take. */
const LONG_TEST_MS = 300_000;

const OURS = customResourceDefinition();
const DEFINITION = { ...CUSTOM_RESOURCE_DEFINITIONS, name: OURS.metadata.name };

let installation: Installation;
let namespace: string;

beforeAll(async () => {
  installation = await Installation.start({ crds: false });
}, LONG_TEST_MS);

afterAll(async () => {
  await installation.stop();
});

beforeEach(async () => {
  namespace = await installation.world.namespace();
});

afterEach(async () => {
  await installation.uninstall('--no-hooks', '--ignore-not-found');
  const { client } = installation.world;
  const { items } = await client.list(PODS, { namespace });
  for (const pod of items) {
    const { name = '' } = readMetadata(pod);
    await client.delete({ ...PODS, namespace, name }, { gracePeriodSeconds: 0 });
  }
  await eventually(async () => {
    const failure = await client.delete(DEFINITION).catch((error: unknown) => error);
    expect(failure).toMatchObject({ failure: { kind: 'NotFound' } });
  });
}, LONG_TEST_MS);

/** Once the webhook that validates it answers. */
async function createBoost(): Promise<JsonObject> {
  return eventually(() => installation.world.createBoost(aBoost({ namespace })));
}

async function boostUids(): Promise<readonly unknown[]> {
  const { client } = installation.world;
  // After a change of the CRD the API server fills its cache anew, and refuses lists meanwhile.
  const { items } = await eventually(() => client.list(STARTUP_CPU_BOOSTS, { namespace }));
  return items.map((item) => readMetadata(item).uid);
}

async function define(definition: JsonObject): Promise<void> {
  await installation.world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition);
}

/** `Kind namespace/name` of every object in the cluster. */
async function inventory(): Promise<readonly string[]> {
  const { kubeconfigPath } = installation.world.controlPlane;
  const kinds = await kubectl(kubeconfigPath, 'api-resources', '--verbs=list', '-o', 'name');
  const all = kinds.stdout.split('\n').filter((name) => name !== '' && !name.includes('event'));
  const { stdout } = await kubectl(kubeconfigPath, 'get', all.join(','), '-A', '-o', 'json');
  return inventorySchema
    .parse(JSON.parse(stdout))
    .items.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`)
    .sort();
}

const inventorySchema = z.looseObject({
  items: z.array(
    z.looseObject({
      kind: z.string(),
      metadata: z.looseObject({ name: z.string(), namespace: z.string().default('') }),
    }),
  ),
});

/** What the controllers have made: must not be made again by what Helm does. */
async function certificates(): Promise<JsonObject> {
  const { client } = installation.world;
  const data = async (which: string): Promise<unknown> => {
    const name = `${FULLNAME}-${which}`;
    return (await client.get({ ...SECRETS, namespace: NAMESPACE, name })).data;
  };
  const bundle = async (resource: typeof SECRETS): Promise<unknown> => {
    const [webhook] = itemsOf((await client.get({ ...resource, name: FULLNAME })).webhooks);
    return fieldsOf(fieldsOf(webhook).get('clientConfig')).get('caBundle');
  };
  const all = {
    ca: await data('ca'),
    serving: await data('serving'),
    mutating: await bundle(MUTATING_WEBHOOK_CONFIGURATIONS),
    validating: await bundle(VALIDATING_WEBHOOK_CONFIGURATIONS),
  };
  expect(Object.values(all)).not.toContain(undefined);
  return all;
}

function environments(component: 'admission' | 'controller', variable: string): readonly unknown[] {
  return installation.player
    .podsOf(`${FULLNAME}-${component}`)
    .map(({ env, isReady }) => [env[variable], isReady]);
}

describe('helm install', () => {
  it(
    'on an empty cluster brings the CRD, and boosts and reverts pods',
    async () => {
      await done(installation.install());
      expect(installation.player.ended.at(-1)).toMatchObject({
        name: `${FULLNAME}-apply-crd`,
        code: 0,
      });
      expect((await inventory()).filter((each) => /apply-crd|revert-all/.test(each))).toEqual([]);
      await createBoost();
      const pod = await installation.createPodWith(BOOSTED, { namespace, name: 'app' });
      expect(await installation.world.cpuOf(pod)).toEqual({ app: BOOSTED });
      await installation.world.run(pod);
      await installation.world.kubelet.ready(pod);
      await installation.world.untilReverted(pod, { app: ORIGINAL });
    },
    LONG_TEST_MS,
  );

  it(
    'takes over the CRD of google/kube-startup-cpu-boost, and its boosts boost on',
    async () => {
      await define(upstreamDefinition());
      const boost = await createBoost();
      await done(installation.install());
      expect(await installation.world.client.get(DEFINITION)).toMatchObject({ spec: OURS.spec });
      expect(await boostUids()).toEqual([readMetadata(boost).uid]);
      await installation.untilNewPodsHave(BOOSTED, namespace);
    },
    LONG_TEST_MS,
  );

  it(
    'is refused beside a release that is there, with what to do, and leaves nothing',
    async () => {
      await done(installation.install());
      const { code, stderr } = await installation.installAs('second', 'elsewhere');
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(
          `MutatingWebhookConfiguration ${FULLNAME}, of the Helm release ${RELEASE} in the namespace ${NAMESPACE} boosts pods already`,
        ),
      ]);
      expect(stderr).toContain('uninstall the other one first');
      const { stdout } = await installation.helm.run('list', '--all-namespaces', '--short');
      expect(stdout.trim().split('\n')).toEqual([RELEASE]);
    },
    LONG_TEST_MS,
  );

  it(
    'is refused by what is left of a release whose namespace is gone, and told how to delete that',
    async () => {
      const { client, controlPlane } = installation.world;
      const objects = await templateChart({ name: 'lost', namespace: 'lost' });
      const configuration = onlyOne(objects, 'MutatingWebhookConfiguration');
      const annotations = {
        'meta.helm.sh/release-name': 'lost',
        'meta.helm.sh/release-namespace': 'lost',
      };
      const metadata = { ...objectAt(configuration, 'metadata'), annotations };
      await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...configuration, metadata });
      try {
        const { code, stderr } = await installation.install();
        const [command = ''] = /^kubectl delete .*$/m.exec(stderr) ?? [];
        expect([code, command]).toEqual([1, expect.stringContaining('instance=lost')]);
        await kubectl(controlPlane.kubeconfigPath, ...command.split(' ').slice(1));
        const { items } = await client.list(MUTATING_WEBHOOK_CONFIGURATIONS);
        expect(items).toEqual([]);
      } finally {
        const lost = { ...MUTATING_WEBHOOK_CONFIGURATIONS, name: nameOf(configuration) };
        await client.delete(lost).catch(() => undefined);
      }
      await done(installation.install());
    },
    LONG_TEST_MS,
  );
});

describe('helm that is killed', () => {
  it(
    'while a hook of an install runs leaves no account that an uninstall does not take away',
    async () => {
      const before = await inventory();
      const job = { ...JOBS, namespace: NAMESPACE, name: `${FULLNAME}-apply-crd` };
      await installation.helm.kill(
        () => eventually(() => installation.world.client.get(job)),
        ...['install', RELEASE, CHART, '-n', NAMESPACE, '--create-namespace', '--wait'],
      );
      expect(await inventory()).toContain(`ClusterRole /${FULLNAME}-apply-crd`);
      const again = await installation.install();
      expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('still in use')]);
      await done(installation.uninstall());
      const left = (await inventory()).filter((each) => !before.includes(each));
      expect(left.filter((each) => each.includes(FULLNAME) && !each.startsWith('Job '))).toEqual(
        [],
      );
      await done(installation.install());
    },
    LONG_TEST_MS,
  );

  it(
    'while an uninstall reverts pods comes back by a rollback, or to its end by another uninstall',
    async () => {
      await done(installation.install());
      const job = { ...JOBS, namespace: NAMESPACE, name: `${FULLNAME}-revert-all` };
      await installation.helm.kill(
        () => eventually(() => installation.world.client.get(job)),
        ...['uninstall', RELEASE, '-n', NAMESPACE, '--wait'],
      );
      expect((await installation.upgrade()).stderr).toContain('has no deployed releases');
      await done(installation.rollback(1));
      await done(installation.upgrade());
      await done(installation.uninstall());
      expect((await inventory()).filter((each) => each.includes(FULLNAME))).toEqual([]);
    },
    LONG_TEST_MS,
  );
});

describe('helm upgrade', () => {
  it(
    'tells who has changed a webhook by hand, and puts it right with --force-conflicts',
    async () => {
      await done(installation.install());
      const ref = { ...MUTATING_WEBHOOK_CONFIGURATIONS, name: FULLNAME };
      const before = await certificates();
      await kubectl(
        installation.world.controlPlane.kubeconfigPath,
        ...['patch', 'mutatingwebhookconfiguration', FULLNAME, '--type', 'json', '--patch'],
        '[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]',
      );
      const { code, stderr } = await installation.upgrade();
      expect([code, stderr]).toEqual([1, expect.stringMatching(/kubectl-patch.*failurePolicy/s)]);
      await done(installation.upgrade('--force-conflicts'));
      expect(await installation.world.client.get(ref)).toMatchObject({
        webhooks: [{ failurePolicy: 'Ignore' }],
      });
      expect(await certificates()).toEqual(before);
    },
    LONG_TEST_MS,
  );

  it(
    'brings the CRD to its version, and keeps boosts, certificates and what the API server trusts',
    async () => {
      await done(installation.install());
      const boost = await createBoost();
      await installation.untilNewPodsHave(BOOSTED, namespace);
      const before = await certificates();
      await installation.world.client.patch(DEFINITION, {
        type: 'apply',
        body: upstreamDefinition(),
        fieldManager: 'somebody',
      });
      await done(installation.upgrade('--set', 'settings.maximumBoostSeconds=1800'));
      expect(await installation.world.client.get(DEFINITION)).toMatchObject({ spec: OURS.spec });
      expect(await boostUids()).toEqual([readMetadata(boost).uid]);
      expect(environments('controller', 'MAXIMUM_BOOST_SECONDS')).toEqual([
        ['1800', true],
        ['1800', true],
      ]);
      expect(await certificates()).toEqual(before);
      await installation.untilNewPodsHave(BOOSTED, namespace);

      await done(installation.rollback(1));
      expect(environments('controller', 'MAXIMUM_BOOST_SECONDS')).toEqual([
        ['3600', true],
        ['3600', true],
      ]);
      expect(await certificates()).toEqual(before);
      await installation.untilNewPodsHave(BOOSTED, namespace);
    },
    LONG_TEST_MS,
  );

  it(
    'fails before it changes anything where a boost would lose a field',
    async () => {
      await done(installation.install());
      const [version] = OURS.spec.versions;
      const later = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
      await installation.world.client.patch(DEFINITION, {
        type: 'merge',
        body: { spec: { versions: [{ ...version, schema: { openAPIV3Schema: later } }] } },
      });
      const boost = aBoost({ namespace });
      const spec = { ...objectAt(boost, 'spec'), future: true };
      await eventually(async () => {
        const stored = await installation.world.createBoost({ ...boost, spec });
        expect(objectAt(stored, 'spec').future).toBe(true);
      });
      const { code } = await installation.upgrade('--set', 'settings.maximumBoostSeconds=1800');
      expect(code).toBe(1);
      expect(installation.player.ended.at(-1)).toMatchObject({
        code: 1,
        output: expect.stringContaining(': spec.future\n'),
      });
      expect(environments('controller', 'MAXIMUM_BOOST_SECONDS')).toEqual([
        ['3600', true],
        ['3600', true],
      ]);
    },
    LONG_TEST_MS,
  );
});

describe('helm uninstall', () => {
  it(
    'leaves no pod boosted and nothing but the CRD with its boosts, and an install after it boosts again',
    async () => {
      const before = await inventory();
      await done(installation.install());
      const boost = await createBoost();
      const pods = [];
      for (const name of ['one', 'two', 'three']) {
        const pod = await installation.createPodWith(BOOSTED, { namespace, name });
        await installation.world.run(pod);
        pods.push(pod);
      }
      await done(installation.uninstall());
      for (const pod of pods) {
        expect(await installation.world.cpuOf(pod)).toEqual({ app: ORIGINAL });
        const { annotations, labels } = await installation.world.read(pod);
        expect([annotations?.has(BOOST_KEY), labels?.has(BOOST_KEY)]).not.toContain(true);
      }
      const left = (await inventory()).filter((each) => !before.includes(each));
      expect(left.filter((each) => !each.startsWith(`Pod ${namespace}/`))).toEqual([
        'APIService /v1alpha1.autoscaling.x-k8s.io',
        'CustomResourceDefinition /startupcpuboosts.autoscaling.x-k8s.io',
        `StartupCPUBoost ${namespace}/${readMetadata(boost).name ?? ''}`,
      ]);
      expect(await boostUids()).toEqual([readMetadata(boost).uid]);
      expect(installation.player.podsOf(`${FULLNAME}-controller`)).toEqual([]);

      await done(installation.install());
      await installation.untilNewPodsHave(BOOSTED, namespace);
    },
    LONG_TEST_MS,
  );

  it(
    'fails while a pod cannot be reverted, tells which, and goes on when it can',
    async () => {
      await done(installation.install());
      await createBoost();
      const pod = await installation.createPodWith(BOOSTED, { namespace, name: 'held' });
      await installation.world.run(pod);
      const policy = await refuseResizes(installation.world.client, namespace);
      expect((await installation.uninstall()).code).toBe(1);
      expect(installation.player.ended.at(-1)).toMatchObject({
        name: `${FULLNAME}-revert-all`,
        code: 1,
        output: expect.stringContaining(`${namespace}/held: Refused`),
      });
      expect(installation.player.podsOf(`${FULLNAME}-controller`)).toHaveLength(2);
      await installation.untilNewPodsHave(ORIGINAL, namespace);
      await policy.remove();
      await done(installation.uninstall());
      expect(await installation.world.cpuOf(pod)).toEqual({ app: ORIGINAL });
    },
    LONG_TEST_MS,
  );
});
