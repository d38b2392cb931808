/** The chart on a real API server: every object is taken, and the rights are enough and not more. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import {
  ApiError,
  LEASES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  createKubeClient,
  loadKubeConfig,
} from '../../src/kube';
import type { JsonObject, KubeClient, ResourceRef } from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { templateChart } from '../support/chart';
import { OPTIONS, RELEASES } from '../support/chartOptions';
import { startCommand } from '../support/command';
import type { CommandEnd } from '../support/command';
import { eventually } from '../support/eventually';
import { kubectlWith } from '../support/kubectl';
import { listAt, objectAt, textAt, textsAt } from '../support/objectAt';
import { startProcess } from '../support/processes';
import type { BoostProcess } from '../support/processes';
import {
  COMPONENTS,
  below,
  containerOf,
  deploymentOf,
  environmentOf,
  nameOf,
  ofKind,
  onlyOne,
  podOf,
} from '../support/release';
import type { Component } from '../support/release';
import { kubeconfigOf } from '../support/serviceAccount';
import { World } from '../support/world';

/** Of aContainer. */
const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

/** Helm's, as it writes by server-side apply. */
const APPLY = ['apply', '--server-side', '--field-manager=helm', '--validate=strict'];

let world: World;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

async function createNamespace(name: string, labels: JsonObject = {}): Promise<void> {
  const metadata = { name, labels };
  await world.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
}

async function apply(objects: readonly JsonObject[], ...more: readonly string[]): Promise<void> {
  const { kubeconfigPath } = world.controlPlane;
  const { code, stderr } = await kubectlWith(kubeconfigPath, [...APPLY, ...more], objects);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

describe('a real API server', () => {
  /** As strict as the Pod Security Standards are. */
  const STRICT = 'strict';
  const RESTRICTED = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const NAMESPACE = 'plain';

  beforeAll(async () => {
    await createNamespace(NAMESPACE);
    await createNamespace(STRICT, RESTRICTED);
    await apply(
      [
        ['monitoring.coreos.com', 'v1', 'ServiceMonitor'],
        ['monitoring.coreos.com', 'v1', 'PrometheusRule'],
        ['cert-manager.io', 'v1', 'Certificate'],
        ['cert-manager.io', 'v1', 'Issuer'],
      ].map(([group = '', version = '', kind = '']) => anyDefinition(group, version, kind)),
    );
    const values = { ...OPTIONS['cert-manager'], ...OPTIONS['all of the monitoring'] };
    const objects = await templateChart({ namespace: NAMESPACE, values });
    // The definitions are in force a moment later.
    await eventually(() => apply(objects, '--dry-run=server'));
  });

  const options = Object.entries(OPTIONS).map(([what, values]) => ({ what, values }));

  it.each(options)('takes every object, and knows every field, of $what', async ({ values }) => {
    await apply(await templateChart({ namespace: NAMESPACE, values }), '--dry-run=server');
  });

  it.each(Object.entries(RELEASES))('takes every object of %s', async (_what, release) => {
    const { namespace = '' } = release;
    const known = await world.client.list(NAMESPACES);
    if (!known.items.map(nameOf).includes(namespace)) await createNamespace(namespace);
    await apply(await templateChart(release), '--dry-run=server');
  });

  it('takes every pod where only restricted ones are allowed, but for one in the node’s network', async () => {
    for (const { what, values } of options) {
      const objects = await templateChart({ namespace: NAMESPACE, values });
      for (const workload of [
        ...ofKind(objects, 'Deployment'),
        ...ofKind(objects, 'Job'),
        ...ofKind(objects, 'Pod'),
      ]) {
        const spec = below(podOf(workload), 'spec');
        const pod = {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'pod' },
          // There is no class on this API server.
          spec: { ...spec, priorityClassName: '' },
        };
        const isOnNode = spec.hostNetwork === true;
        const answer = await world.client
          .create({ ...PODS, namespace: STRICT }, pod, { dryRun: true })
          .then(() => '', messageOf);
        expect([what, nameOf(workload), answer]).toEqual([
          what,
          nameOf(workload),
          isOnNode ? expect.stringContaining('host namespaces') : '',
        ]);
      }
    }
  });

  /** What those who have the real ones in their cluster know; here they only have to be there. */
  function anyDefinition(group: string, version: string, kind: string): JsonObject {
    const singular = kind.toLowerCase();
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    return {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${singular}s.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind, singular, plural: `${singular}s` },
        versions: [
          { name: version, served: true, storage: true, schema: { openAPIV3Schema: schema } },
        ],
      },
    };
  }
});

describe('a release with a long name and the rights of the chart', () => {
  const NAMESPACE = 'system-of-the-release';
  const release = { name: `r${'-long'.repeat(10)}`, namespace: NAMESPACE };
  let objects: readonly JsonObject[];
  /** Of `helm test`. */
  let test: readonly JsonObject[];
  let clients: Readonly<Record<Component, KubeClient>>;
  let processes: Readonly<Record<Component, BoostProcess>>;
  let namespace: string;

  beforeAll(async () => {
    await createNamespace(NAMESPACE);
    const all = await templateChart(release);
    test = all.filter((object) => String(hookOf(object)).startsWith('test'));
    objects = all.filter((object) => hookOf(object) === undefined);
    await apply(objects.filter(({ kind }) => !String(kind).endsWith('WebhookConfiguration')));
    clients = { admission: await clientOf('admission'), controller: await clientOf('controller') };
    // Together: admission is Ready with the certificate that the controller makes.
    const [admission, controller] = await Promise.all([start('admission'), start('controller')]);
    processes = { admission, controller };
    await apply(webhooks());
    namespace = await world.namespace();
    await eventually(() => world.createBoost(aBoost({ namespace })));
    await untilBoosting();
  });

  afterAll(async () => {
    await Promise.all(COMPONENTS.map((each) => processes[each].stop()));
    await Promise.all(COMPONENTS.map((each) => clients[each].close()));
  });

  /** With the environment of the Deployment, but for where this machine lets it listen. */
  async function start(component: Component): Promise<BoostProcess> {
    const ports = ['WEBHOOK_PORT', 'HEALTH_PROBE_BIND_ADDR', 'METRICS_PROBE_BIND_ADDR'];
    const env = Object.entries(environmentOf(deploymentOf(objects, component)));
    return startProcess(component, {
      kubeconfigPath: await kubeconfigOf(world.controlPlane, accountOf(component)),
      env: Object.fromEntries(env.filter(([name]) => !ports.includes(name))),
    });
  }

  async function clientOf(component: Component): Promise<KubeClient> {
    const path = await kubeconfigOf(world.controlPlane, accountOf(component));
    return createKubeClient(loadKubeConfig({ kind: 'File', path }));
  }

  function accountOf(component: Component): { readonly namespace: string; readonly name: string } {
    const { serviceAccountName } = below(podOf(deploymentOf(objects, component)), 'spec');
    return { namespace: NAMESPACE, name: String(serviceAccountName) };
  }

  /** Those of the chart, with the address of the process in the place of the Service. */
  function webhooks(): readonly JsonObject[] {
    return ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map((kind) => {
      const configuration = onlyOne(objects, kind);
      const led = listAt(configuration, 'webhooks').map((webhook) => ({
        ...webhook,
        clientConfig: {
          url: `${processes.admission.webhookUrl}${textAt(below(webhook, 'clientConfig', 'service'), 'path')}`,
        },
      }));
      return { ...configuration, webhooks: led };
    });
  }

  async function untilBoosting(): Promise<void> {
    await eventually(async () => {
      const pods = { ...PODS, namespace };
      const answer = await world.client.create(pods, aPod({ namespace }), { dryRun: true });
      expect(answer).toMatchObject({ metadata: { labels: { [BOOST_KEY]: 'boost' } } });
    });
  }

  async function boostAndRevert(name: string): Promise<void> {
    const pod = await world.createPod(aPod({ namespace, name }));
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    await world.run(pod);
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);
  }

  async function caBundles(): Promise<readonly string[]> {
    const { WEBHOOK_CONFIGURATION: name = '' } = environmentOf(deploymentOf(objects, 'controller'));
    const both = [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS];
    const configurations = await Promise.all(
      both.map((resource) => world.client.get({ ...resource, name })),
    );
    return configurations
      .flatMap((configuration) => listAt(configuration, 'webhooks'))
      .map((webhook) => textAt(objectAt(webhook, 'clientConfig'), 'caBundle'));
  }

  function secretRef(variable: 'CA_SECRET' | 'SERVING_SECRET') {
    const name = environmentOf(deploymentOf(objects, 'controller'))[variable] ?? '';
    return { ...SECRETS, namespace: NAMESPACE, name };
  }

  async function secretData(): Promise<readonly unknown[]> {
    const secrets = [secretRef('CA_SECRET'), secretRef('SERVING_SECRET')];
    return Promise.all(secrets.map(async (ref) => (await world.client.get(ref)).data));
  }

  it('boosts and reverts a pod', async () => {
    await boostAndRevert('by-the-chart');
  });

  it('keeps its certificates when the chart is applied again', async () => {
    const before = [await caBundles(), await secretData()];
    const again = [...webhooks(), ...ofKind(objects, 'Secret')];

    await apply(again.map(withNote), '--force-conflicts');

    expect([await caBundles(), await secretData()]).toEqual(before);
    expect(before[0]).toEqual([expect.stringMatching(/.{100}/), expect.stringMatching(/.{100}/)]);
    await boostAndRevert('after-an-upgrade');
  });

  it('gets caBundles back that a forced upgrade has blanked, and boosts on', async () => {
    const before = await caBundles();
    const { kubeconfigPath } = world.controlPlane;

    const { code } = await kubectlWith(kubeconfigPath, ['replace'], webhooks());

    expect(code).toBe(0);
    await eventually(async () => {
      expect(await caBundles()).toEqual(before);
    });
    await untilBoosting();
    await boostAndRevert('after-a-forced-upgrade');
  });

  it('gets its certificates back where the Secrets are blanked with them', async () => {
    const { kubeconfigPath } = world.controlPlane;
    const blank = [...webhooks(), ...ofKind(objects, 'Secret')];

    expect(await kubectlWith(kubeconfigPath, ['replace'], blank)).toMatchObject({ code: 0 });

    await eventually(async () => {
      expect(await caBundles()).not.toContain('');
      expect((await secretData())[0]).toBeDefined();
    });
    await untilBoosting();
    await boostAndRevert('after-a-new-install');
  });

  it('lets admission read, and write nothing', async () => {
    for (const where of [NAMESPACE, namespace, 'kube-system']) {
      const writes = (await grantsOf('admission', where)).filter(
        ({ verb }) => !['get', 'list', 'watch'].includes(verb),
      );
      expect(writes).toEqual([]);
    }
  });

  it('lets the controller write what it has to, and nothing else', async () => {
    const {
      WEBHOOK_CONFIGURATION: configuration = '',
      CA_SECRET: ca = '',
      SERVING_SECRET: serving = '',
    } = environmentOf(deploymentOf(objects, 'controller'));
    const writes = async (where: string): Promise<readonly string[]> =>
      (await grantsOf('controller', where))
        .filter(({ verb }) => !['get', 'list', 'watch'].includes(verb))
        .map(({ verb, resource, names }) => `${verb} ${resource} ${names.join(',')}`.trim())
        .sort();
    const everywhere = [
      `patch mutatingwebhookconfigurations ${configuration}`,
      'patch pods',
      'patch pods/resize',
      'patch startupcpuboosts/status',
      `patch validatingwebhookconfigurations ${configuration}`,
    ];
    expect(await writes(namespace)).toEqual(everywhere);
    expect(await writes(NAMESPACE)).toEqual(
      [
        ...everywhere,
        'create leases',
        'patch leases startup-cpu-boost-controller',
        `patch secrets ${ca},${serving}`,
      ].sort(),
    );
  });

  it('lets nobody read a Secret but those of the certificates', async () => {
    const other = { ...SECRETS, namespace: NAMESPACE };
    const metadata = { name: 'password' };
    await world.client.create(other, { apiVersion: 'v1', kind: 'Secret', metadata });
    const answers = async (component: Component): Promise<readonly string[]> => {
      const client = clients[component];
      return Promise.all([
        answerOf(client.list(secretsOf(NAMESPACE))),
        answerOf(client.list(secretsOf(namespace))),
        answerOf(client.get({ ...other, name: 'password' })),
        answerOf(client.list(secretsOf(NAMESPACE), { fieldSelector: 'metadata.name=password' })),
        answerOf(client.get(secretRef('CA_SECRET'))),
        answerOf(
          client.list(other, {
            fieldSelector: `metadata.name=${secretRef('SERVING_SECRET').name}`,
          }),
        ),
      ]);
    };
    const no = 'Forbidden';
    expect(await answers('admission')).toEqual([no, no, no, no, no, 'Allowed']);
    expect(await answers('controller')).toEqual([no, no, no, no, 'Allowed', 'Allowed']);
  });

  it('lets nobody at the Leases of others', async () => {
    const lease = { ...LEASES, namespace: NAMESPACE, name: 'of-others' };
    await world.client.create(LEASES_OF_RELEASE, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: lease.name },
    });
    for (const component of COMPONENTS) {
      const patch = { type: 'merge', body: { spec: { holderIdentity: 'thief' } } } as const;
      expect(await answerOf(clients[component].patch(lease, patch))).toBe('Forbidden');
      expect(await answerOf(clients[component].get(lease))).toBe('Forbidden');
    }
  });

  describe('helm test', () => {
    let check: (...args: readonly string[]) => Promise<CommandEnd>;

    beforeAll(async () => {
      await apply(test.filter(({ kind }) => kind !== 'Pod'));
      const pod = onlyOne(test, 'Pod');
      const account = {
        namespace: NAMESPACE,
        name: textAt(objectAt(pod, 'spec'), 'serviceAccountName'),
      };
      const kubeconfigPath = await kubeconfigOf(world.controlPlane, account);
      check = (...args) =>
        startCommand([...textsAt(containerOf(pod), 'args'), ...args], {
          ...environmentOf(pod),
          KUBECONFIG: kubeconfigPath,
        }).ended;
    });

    it('passes where all works', async () => {
      expect(await check('--timeout', '20s')).toMatchObject({
        code: 0,
        stdout: '[+]webhook for boosts ok\n[+]webhook for pods ok\n[+]controller ok\n',
      });
    });

    const elsewhere = { namespace: 'other', name: 'other', path: '/mutate-v1-pod' };
    const edits: readonly (readonly [
      kind: 'mutating' | 'validating',
      path: string,
      value: unknown,
      reason: RegExp,
    ])[] = [
      ['mutating', 'rules', [], /pods failed: no rule of it is for new pods/],
      ['mutating', 'rules/0/operations', ['UPDATE'], /pods failed: no rule of it is for new pods/],
      ['mutating', 'rules/0/resources', ['services'], /pods failed: no rule of it is for new pods/],
      ['mutating', 'failurePolicy', 'Fail', /pods failed: its failurePolicy is not Ignore/],
      ['mutating', 'name', 'other.example.com', /pods failed: .* has no webhook cpuboost/],
      ['mutating', 'clientConfig/url', 'https://127.0.0.1:1/other', /pods failed: its path is not/],
      ['mutating', 'clientConfig', { service: elsewhere }, /pods failed: it leads elsewhere than/],
      ['validating', 'rules', [], /boosts failed: no rule of it is for new boosts/],
      ['validating', 'failurePolicy', 'Ignore', /boosts failed: its failurePolicy is not Fail/],
      ['validating', 'name', 'other.example.com', /boosts failed: .* has no webhook vstartup/],
    ];

    it.each(edits)('fails where of the %s webhook %s has been made %j', async (...edit) => {
      const [kind, path, value, reason] = edit;
      const { WEBHOOK_CONFIGURATION: name = '' } = environmentOf(onlyOne(test, 'Pod'));
      const both = {
        mutating: MUTATING_WEBHOOK_CONFIGURATIONS,
        validating: VALIDATING_WEBHOOK_CONFIGURATIONS,
      };
      const ref = { ...both[kind], name };
      const [before] = listAt(await world.client.get(ref), 'webhooks');
      const replace = (at: string, by: unknown): Promise<unknown> => {
        const operations = [{ op: 'replace', path: `/webhooks/0${at}`, value: by }] as const;
        return world.client.patch(ref, { type: 'json', operations });
      };
      await replace(`/${path}`, value);
      try {
        const { code, stdout } = await check('--timeout', '3s');
        expect([code, stdout]).toEqual([1, expect.stringMatching(reason)]);
        expect(stdout).toContain('[+]controller ok\n');
      } finally {
        await replace('', before);
      }
    });

    it('fails with the reason where nothing runs', async () => {
      await Promise.all(COMPONENTS.map((each) => processes[each].stop()));
      const { code, stdout } = await check('--timeout', '1s');
      expect(code).toBe(1);
      expect(stdout).toMatch(/^\[-\]webhook for boosts failed: .*connection refused/m);
      expect(stdout).toMatch(/^\[\+\]webhook for pods ok$/m);
      expect(stdout).toMatch(/^\[-\]controller failed: nobody holds the Lease/m);
    });
  });

  const LEASES_OF_RELEASE = { ...LEASES, namespace: NAMESPACE };

  interface Grant {
    readonly verb: string;
    readonly resource: string;
    readonly names: readonly string[];
  }

  /** What the API server itself says the account may do there, but for what everybody may. */
  async function grantsOf(component: Component, where: string): Promise<readonly Grant[]> {
    const review = await clients[component].create(RULES_REVIEWS, {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace: where },
    });
    const status = objectAt(review, 'status');
    expect(status.incomplete).toBe(false);
    const ofEverybody = ['authorization.k8s.io', 'authentication.k8s.io'];
    return listAt(status, 'resourceRules')
      .filter((rule) => !textsAt(rule, 'apiGroups').every((group) => ofEverybody.includes(group)))
      .flatMap((rule) =>
        textsAt(rule, 'verbs').flatMap((verb) =>
          textsAt(rule, 'resources').map((resource) => ({
            verb,
            resource,
            names: textsAt(rule, 'resourceNames'),
          })),
        ),
      );
  }
});

const RULES_REVIEWS: ResourceRef = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectrulesreviews',
};

/** Hooks are there only while Helm runs them; undefined for what stays. */
function hookOf(object: JsonObject): unknown {
  return below(object, 'metadata', 'annotations')['helm.sh/hook'];
}

function withNote(object: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  return { ...object, metadata: { ...metadata, annotations: { version: 'next' } } };
}

const secretsOf = (namespace: string) => ({ ...SECRETS, namespace });

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function answerOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'Allowed';
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.failure.kind;
  }
}
