/** Our own accounts under the rights and policies of the chart: enough for all the work, too little for a thief. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  ENDED_KEY,
  SKIPPED_KEY,
  parseRecord,
  readPod,
  jsonPointer,
} from '../../src/boost-engine';
import type { CpuResources, JsonPatch } from '../../src/boost-engine';
import { issueAuthority } from '../../src/certificates';
import { STOP_MARK } from '../../src/controller/podWebhooks';
import {
  ApiError,
  LEASES,
  LIMIT_RANGES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  createKubeClient,
  loadKubeConfig,
} from '../../src/kube';
import type { JsonObject, KubeClient, ObjectRef, ResourceRef } from '../../src/kube';
import { readAuditLog } from '../support/auditLog';
import { aBoost, aContainer, aPod } from '../support/builders';
import { RELEASE, renderChart } from '../support/chart';
import { startCommand } from '../support/command';
import type { CommandEnd } from '../support/command';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { listAt, objectAt, textAt } from '../support/objectAt';
import { startProcess } from '../support/processes';
import type { BoostProcess, Role } from '../support/processes';
import { kubeconfigOf } from '../support/serviceAccount';
import { POLICIES, startTypeChecker } from '../support/typeChecker';
import { installWebhooks } from '../support/webhooks';
import { World } from '../support/world';

/** Of the release. */
const NAMESPACE = 'boost-system';
const ACCOUNTS = ['admission', 'controller', 'revert-all'] as const;
type Account = (typeof ACCOUNTS)[number];

const ORIGINAL: CpuResources = { request: '250m', limit: '1' };
const BOOSTED: CpuResources = { request: '500m', limit: '2' };

let world: World;
let rendered: readonly JsonObject[];
const kubeconfigs = new Map<Account, string>();
const clients = new Map<Account, KubeClient>();

beforeAll(async () => {
  world = await World.start({ audit: true });
  await world.client.create(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE },
  });
  rendered = await renderChart({ namespace: NAMESPACE });
  await installRights(rendered);
  for (const account of ACCOUNTS) {
    const name = `${RELEASE}-${account}`;
    const path = await kubeconfigOf(world.controlPlane, { namespace: NAMESPACE, name });
    kubeconfigs.set(account, path);
    clients.set(account, createKubeClient(loadKubeConfig({ kind: 'File', path })));
  }
});

afterAll(async () => {
  await Promise.all([...clients.values()].map((client) => client.close()));
  await world.stop();
});

const RIGHTS: Readonly<Record<string, ResourceRef>> = {
  ServiceAccount: { group: '', version: 'v1', plural: 'serviceaccounts' },
  Secret: SECRETS,
  Lease: LEASES,
  ClusterRole: rbac('clusterroles'),
  ClusterRoleBinding: rbac('clusterrolebindings'),
  Role: rbac('roles'),
  RoleBinding: rbac('rolebindings'),
  ValidatingAdmissionPolicy: POLICIES,
  ValidatingAdmissionPolicyBinding: { ...POLICIES, plural: 'validatingadmissionpolicybindings' },
};

function rbac(plural: string): ResourceRef {
  return { group: 'rbac.authorization.k8s.io', version: 'v1', plural };
}

/** What says who may do what; nothing here runs from an image. */
async function installRights(objects: readonly JsonObject[]): Promise<void> {
  for (const object of objects) {
    const resource = RIGHTS[textAt(object, 'kind')];
    if (resource === undefined) continue;
    const metadata = objectAt(object, 'metadata');
    const namespace = textAt(metadata, 'namespace');
    await world.client.create(namespace === '' ? resource : { ...resource, namespace }, object);
  }
}

function clientOf(account: Account): KubeClient {
  const client = clients.get(account);
  if (client === undefined) throw new Error(`${account} has no client`);
  return client;
}

const set = (path: string, value: unknown): JsonPatch => [{ op: 'add', path, value }];
const remove = (path: string): JsonPatch => [{ op: 'remove', path }];

/** What the API server says to the patch, which is not carried out: '' where it accepts it. */
async function answer(client: KubeClient, ref: ObjectRef, operations: JsonPatch): Promise<string> {
  try {
    await client.patch(ref, { type: 'json', operations }, { dryRun: true });
    return '';
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${error.failure.kind}: ${error.failure.message}`;
  }
}

describe('the policies', () => {
  it('are right by the type checker of the API, also in what it does not look at by itself', async () => {
    const checker = await startTypeChecker(world.controlPlane);
    const lenient = await renderChart({
      namespace: NAMESPACE,
      values: { 'settings.revertAnyway': true },
    });
    const policies = [...rendered, ...lenient].filter(
      ({ kind }) => kind === 'ValidatingAdmissionPolicy',
    );
    expect(policies).toHaveLength(4);
    for (const policy of policies) expect(await checker.check(policy)).toEqual([]);
    const [first = {}] = policies;
    const spec = objectAt(first, 'spec');
    const slip = { name: 'slip', expression: 'object.metadata.lables' };
    const wrong = { ...first, spec: { ...spec, variables: [...listAt(spec, 'variables'), slip] } };
    expect(await checker.check(wrong)).toEqual([
      expect.stringContaining("undefined field 'lables'"),
    ]);
    await checker.stop();
  });

  it('go by the names that the accounts have', async () => {
    const objects = await renderChart({
      namespace: 'elsewhere',
      values: { fullnameOverride: 'other', 'controller.serviceAccount.name': 'mine' },
    });
    const conditions = objects
      .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
      .flatMap((policy) => listAt(objectAt(policy, 'spec'), 'matchConditions'));
    expect(conditions).toHaveLength(2);
    for (const condition of conditions) {
      expect(textAt(condition, 'expression').match(/'[^']+'/g)).toEqual([
        "'system:serviceaccount:elsewhere:mine'",
        "'system:serviceaccount:elsewhere:other-revert-all'",
      ]);
    }
  });

  it('are there unless they are switched off', async () => {
    const without = await renderChart({
      namespace: NAMESPACE,
      values: { 'policies.enabled': false },
    });
    const kinds = new Set(without.map(({ kind }) => kind));
    expect(kinds).toContain('ServiceAccount');
    expect([...kinds].filter((kind) => String(kind).includes('AdmissionPolicy'))).toEqual([]);
  });
});

describe('with the rights and policies of the chart', () => {
  let admission: BoostProcess;
  let controller: BoostProcess;
  let namespace: string;
  let oldAuthority: string;

  beforeAll(async () => {
    oldAuthority = await storeDueAuthority();
    [admission, controller] = await Promise.all([start('admission'), start('controller')]);
    // A controller fills the caBundles.
    await installWebhooks(world.client, { url: admission.webhookUrl });
  });

  afterAll(async () => {
    await Promise.all([admission, controller].map((each) => each.stop('SIGKILL')));
  });

  beforeEach(async () => {
    namespace = await world.namespace();
  });

  function start(role: Role): Promise<BoostProcess> {
    return startProcess(role, {
      kubeconfigPath: kubeconfigs.get(role) ?? '',
      env: {
        POD_NAMESPACE: NAMESPACE,
        CERT_MODE: 'self-managed',
        CA_SECRET: `${RELEASE}-ca`,
        SERVING_SECRET: `${RELEASE}-serving`,
        WEBHOOK_CONFIGURATION: RELEASE,
        CA_PUBLISH_WAIT_SECONDS: '2',
      },
    });
  }

  /** Its life is over to two thirds: the next one is made at once. */
  async function storeDueAuthority(): Promise<string> {
    const hour = 3_600_000;
    const { certificate, key } = await issueAuthority({
      now: Date.now() - 10 * hour,
      lifetimeMs: 14 * hour,
    });
    await world.client.patch(
      { ...SECRETS, namespace: NAMESPACE, name: `${RELEASE}-ca` },
      { type: 'merge', body: { stringData: { 'ca.crt': certificate, 'ca.key': key } } },
    );
    return certificate;
  }

  async function createBoosted(name: string): Promise<PodName> {
    const manifest = aPod({ namespace, name });
    await eventually(async () => {
      const pod = await world.client.create({ ...PODS, namespace }, manifest, { dryRun: true });
      expect(readPod(pod).containers[0]?.cpu).toEqual(BOOSTED);
    });
    return world.createPod(manifest);
  }

  async function untilRaised(pod: PodName): Promise<void> {
    await eventually(async () => {
      const { annotations, containers } = await world.read(pod);
      expect(containers[0]?.cpu).toEqual(BOOSTED);
      expect(parseRecord(annotations?.get(BOOST_KEY) ?? '')).toMatchObject({
        record: { state: 'Active' },
      });
    });
  }

  async function untilReverted(pod: PodName): Promise<void> {
    await world.kubelet.ready(pod);
    const { annotations } = await world.untilReverted(pod, { app: ORIGINAL });
    expect(annotations?.get(ENDED_KEY)).toBe('ConditionMet');
  }

  it('a pod is boosted and reverted, and its boost tells of it', async () => {
    const boost = await eventually(() => world.createBoost(aBoost({ namespace })));
    const pod = await createBoosted('app');
    await world.run(pod);
    await eventually(async () => {
      expect(await world.statusOf(boost)).toMatchObject({ activeContainerBoosts: 1 });
    });
    await untilReverted(pod);
  });

  it('a pod that missed its boost is raised in place', async () => {
    const pod = await world.createPod(aPod({ namespace }));
    await world.run(pod);
    await eventually(() => world.createBoost(aBoost({ namespace })));
    await untilRaised(pod);
    await untilReverted(pod);
  });

  it('a pod that the node has no room for is left as it is, with the reason on it', async () => {
    const pod = await world.createPod(aPod({ namespace }));
    await world.run(pod);
    const containerPolicies = [
      {
        matchContainers: { type: 'ExactName', value: 'app' },
        fixedResources: { requests: '17', limits: '17' },
      },
    ];
    await eventually(() => world.createBoost(aBoost({ namespace, containerPolicies })));
    await eventually(async () => {
      const { annotations } = await world.read(pod);
      expect(annotations?.get(SKIPPED_KEY)).toBe('NoRoomOnNode');
    });
    await world.untilReverted(pod, { app: ORIGINAL });
  });

  it('a boost that keeps its pod from being scheduled is taken back, and given on a node', async () => {
    await eventually(() => world.createBoost(aBoost({ namespace })));
    const pod = await createBoosted('app');
    await world.kubelet.findsNoNode(pod);
    await eventually(async () => {
      expect(await world.cpuOf(pod)).toEqual({ app: ORIGINAL });
    });
    await world.run(pod);
    await untilRaised(pod);
    await untilReverted(pod);
  });

  it('the certificates of the webhooks are made and rotated', async () => {
    await eventually(async () => {
      const [mutating = '', validating = ''] = await bundles();
      expect(mutating).toContain('BEGIN CERTIFICATE');
      expect(validating).toBe(mutating);
      const { data } = await world.client.get({
        ...SECRETS,
        namespace: NAMESPACE,
        name: `${RELEASE}-ca`,
      });
      const signer = Buffer.from(textAt(objectAt({ data }, 'data'), 'ca.crt'), 'base64').toString();
      expect(signer.trim()).not.toBe(oldAuthority.trim());
      expect(mutating).toContain(signer);
    });
  });

  async function bundles(): Promise<readonly string[]> {
    const configurations = await Promise.all(
      [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS].map((each) =>
        world.client.get({ ...each, name: RELEASE }),
      ),
    );
    return configurations
      .flatMap((each) => listAt(each, 'webhooks'))
      .map((each) => textAt(objectAt(each, 'clientConfig'), 'caBundle'))
      .map((encoded) => Buffer.from(encoded, 'base64').toString());
  }

  it('revert-all stops the webhook, reverts every pod, and can be undone', async () => {
    await eventually(() => world.createBoost(aBoost({ namespace })));
    const pod = await createBoosted('app');
    await world.run(pod);
    // It does all the work, not a part of it.
    await controller.stop('SIGTERM');
    expect((await revertAll()).code).toBe(0);
    expect(await world.cpuOf(pod)).toEqual({ app: ORIGINAL });
    expect((await revertAll('--undo')).code).toBe(0);
    await createBoosted('again');
  });

  function revertAll(...args: readonly string[]): Promise<CommandEnd> {
    const env = { KUBECONFIG: kubeconfigs.get('revert-all') ?? '', WEBHOOK_CONFIGURATION: RELEASE };
    return startCommand(['revert-all', ...args], env).ended;
  }

  // The last one here: it looks back on all the work above.
  it('nothing is refused, to nobody', async () => {
    const { events } = await readAuditLog(join(world.controlPlane.dir, 'logs'));
    const own = events.filter(({ stage, user }) => stage === 'Complete' && accountOf(user) !== '');
    const refusals = own.filter(({ code }) => code === 401 || code === 403);
    // But for the pod that its node has no room for.
    expect(
      refusals.map(({ response }) => textAt(objectAt({ response }, 'response'), 'message')),
    ).toEqual([expect.stringContaining("node didn't have enough allocatable resources")]);
    const writes = own
      .filter(({ code }) => code < 300)
      .map(({ user, verb, resource, subresource }) =>
        [accountOf(user), verb, [resource, subresource].filter(Boolean).join('/')].join(' '),
      );
    expect([...new Set(writes)].sort()).toEqual([
      'controller create selfsubjectaccessreviews',
      'controller patch leases',
      'controller patch mutatingwebhookconfigurations',
      'controller patch pods',
      'controller patch pods/resize',
      'controller patch secrets',
      'controller patch startupcpuboosts/status',
      'controller patch validatingwebhookconfigurations',
      'revert-all patch mutatingwebhookconfigurations',
      'revert-all patch pods',
      'revert-all patch pods/resize',
    ]);
  });

  function accountOf(user: string): string {
    return new RegExp(`^system:serviceaccount:${NAMESPACE}:${RELEASE}-(.+)$`).exec(user)?.[1] ?? '';
  }
});

interface Theft {
  readonly what: string;
  readonly patch: JsonPatch;
  /** What the refusal begins with: the rule's own name. */
  readonly rule: string;
}

const inMetadata = (map: 'labels' | 'annotations', key: string): string =>
  jsonPointer('metadata', map, key);
const RECORD = JSON.stringify({ state: 'Active', initCPURequests: { app: '250m' } });

/** Pod `victim` of the thefts: what can be changed of a pod is there to be changed. */
const VICTIM = aPod({
  name: 'victim',
  annotations: { [BOOST_KEY]: RECORD, team: 'shop' },
  labels: { app: 'app', [BOOST_KEY]: 'boost' },
  metadata: {
    finalizers: ['example.com/hold'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'owner', uid: 'b7f2' }],
  },
  containers: [aContainer()],
  spec: {
    initContainers: [aContainer({ name: 'sidecar', restartPolicy: 'Always' })],
    schedulingGates: [{ name: 'example.com/wait' }],
  },
});

const THEFTS_OF_A_POD: readonly Theft[] = [
  { what: 'another image', patch: set('/spec/containers/0/image', 'evil:1'), rule: 'spec' },
  {
    what: 'another image of a sidecar',
    patch: set('/spec/initContainers/0/image', 'evil:1'),
    rule: 'spec',
  },
  {
    what: 'a toleration',
    patch: set('/spec/tolerations/-', { operator: 'Exists' }),
    rule: 'spec',
  },
  { what: 'an early end', patch: set('/spec/activeDeadlineSeconds', 1), rule: 'spec' },
  { what: 'no scheduling gate', patch: remove('/spec/schedulingGates'), rule: 'spec' },
  {
    what: 'another node, while it is gated',
    patch: set('/spec/nodeSelector', { node: 'mine' }),
    rule: 'spec',
  },
  { what: 'a label', patch: set(inMetadata('labels', 'role'), 'admin'), rule: 'labels' },
  { what: 'another value of a label', patch: set('/metadata/labels/app', 'db'), rule: 'labels' },
  { what: 'a label less', patch: remove('/metadata/labels/app'), rule: 'labels' },
  { what: 'no labels', patch: remove('/metadata/labels'), rule: 'labels' },
  {
    what: 'a label with the name of an annotation of ours',
    patch: set(inMetadata('labels', ENDED_KEY), 'x'),
    rule: 'labels',
  },
  {
    what: 'an annotation',
    patch: set(inMetadata('annotations', 'role'), 'admin'),
    rule: 'annotations',
  },
  {
    what: 'another value of an annotation',
    patch: set('/metadata/annotations/team', 'bank'),
    rule: 'annotations',
  },
  { what: 'an annotation less', patch: remove('/metadata/annotations/team'), rule: 'annotations' },
  {
    what: 'an annotation whose name only begins as ours do',
    patch: set(inMetadata('annotations', `${BOOST_KEY}-other`), 'x'),
    rule: 'annotations',
  },
  { what: 'no finalizers', patch: remove('/metadata/finalizers'), rule: 'metadata' },
  { what: 'a finalizer', patch: set('/metadata/finalizers/-', 'a.b/c'), rule: 'metadata' },
  { what: 'no owner', patch: remove('/metadata/ownerReferences'), rule: 'metadata' },
  {
    what: 'an owner whose absence has the pod deleted',
    patch: set('/metadata/ownerReferences/-', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: 'none',
      uid: '7c3a',
    }),
    rule: 'metadata',
  },
];

const THEFTS_BY_RESIZE: readonly Theft[] = [
  {
    what: 'more memory',
    patch: set('/spec/containers/0/resources/requests/memory', '96Mi'),
    rule: 'cpu',
  },
  {
    what: 'another limit of memory',
    patch: set('/spec/containers/0/resources/limits/memory', '96Mi'),
    rule: 'cpu',
  },
  {
    what: 'CPU for a sidecar',
    patch: set('/spec/initContainers/0/resources/requests/cpu', '500m'),
    rule: 'containers',
  },
];

const WEBHOOK = '/webhooks/0';
const THEFTS_OF_A_WEBHOOK: readonly Theft[] = [
  {
    what: 'another server',
    patch: set(`${WEBHOOK}/clientConfig/url`, 'https://evil.example:443/'),
    rule: 'clientConfig',
  },
  {
    what: 'a Service as its server',
    patch: [
      ...remove(`${WEBHOOK}/clientConfig/url`),
      ...set(`${WEBHOOK}/clientConfig/service`, { namespace: 'evil', name: 'evil' }),
    ],
    rule: 'clientConfig',
  },
  {
    what: 'other objects',
    patch: set(`${WEBHOOK}/rules/0/resources`, ['secrets']),
    rule: 'webhooks',
  },
  {
    what: 'other operations',
    patch: set(`${WEBHOOK}/rules/0/operations`, ['DELETE']),
    rule: 'webhooks',
  },
  {
    what: 'other namespaces',
    patch: set(`${WEBHOOK}/namespaceSelector`, { matchLabels: { a: 'b' } }),
    rule: 'webhooks',
  },
  {
    what: 'fewer objects',
    patch: set(`${WEBHOOK}/objectSelector`, { matchLabels: { a: 'b' } }),
    rule: 'webhooks',
  },
  { what: 'a long timeout', patch: set(`${WEBHOOK}/timeoutSeconds`, 30), rule: 'webhooks' },
  { what: 'another name', patch: set(`${WEBHOOK}/name`, 'a.b.example'), rule: 'webhooks' },
  {
    what: 'another match policy',
    patch: set(`${WEBHOOK}/matchPolicy`, 'Exact'),
    rule: 'webhooks',
  },
  { what: 'no webhooks', patch: set('/webhooks', []), rule: 'webhooks' },
  {
    what: 'a copy of the webhook',
    patch: [
      { op: 'test', path: `${WEBHOOK}/sideEffects`, value: 'None' },
      ...set('/webhooks/-', {
        name: 'evil.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: 'https://evil.example:443/' },
        rules: [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*'] }],
      }),
    ],
    rule: 'webhooks',
  },
  {
    what: 'a match condition',
    patch: set(`${WEBHOOK}/matchConditions`, [{ name: 'never', expression: 'false' }]),
    rule: 'matchConditions',
  },
  {
    what: 'a stop mark that stops nothing',
    patch: set(`${WEBHOOK}/matchConditions`, [{ ...STOP_MARK, expression: 'true' }]),
    rule: 'matchConditions',
  },
  { what: 'a label', patch: set('/metadata/labels', { a: 'b' }), rule: 'metadata' },
  { what: 'an annotation', patch: set('/metadata/annotations', { a: 'b' }), rule: 'metadata' },
  { what: 'a finalizer', patch: set('/metadata/finalizers', ['a.b/c']), rule: 'metadata' },
];

const FAILURE_POLICIES = { mutating: 'Fail', validating: 'Ignore' } as const;
const CONFIGURATIONS = {
  mutating: { ...MUTATING_WEBHOOK_CONFIGURATIONS, name: RELEASE },
  validating: { ...VALIDATING_WEBHOOK_CONFIGURATIONS, name: RELEASE },
} as const;

describe('who has stolen a token', () => {
  const namespace = 'thefts';
  const pods = { ...PODS, namespace };
  const victim: ObjectRef = { ...pods, name: 'victim' };
  const resized: ObjectRef = { ...victim, subresource: 'resize' };
  const thieves = ['controller', 'revert-all'] as const;

  beforeAll(async () => {
    await world.client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    await installWebhooks(world.client, { url: 'https://127.0.0.1:1', namespaces: ['nowhere'] });
    const manifest = { ...objectAt({ VICTIM }, 'VICTIM') };
    await world.client.create(pods, {
      ...manifest,
      metadata: { ...objectAt(manifest, 'metadata'), namespace },
    });
    await world.client.create(pods, aPod({ namespace, name: 'unmarked' }));
    await Promise.all(thieves.map((thief) => untilPoliciesCount(thief)));
  });

  async function untilPoliciesCount(thief: Account): Promise<void> {
    await eventually(async () => {
      const refusal = await answer(clientOf(thief), victim, set('/metadata/labels/role', 'x'));
      expect(refusal).toContain('labels: ');
    });
  }

  /** Refused to the thief by the rule, and nothing that the API server itself has against it. */
  async function expectTheft(thief: Account, ref: ObjectRef, theft: Theft): Promise<void> {
    const refusal = await answer(clientOf(thief), ref, theft.patch);
    const policy = ref.plural === 'pods' ? 'pods' : 'webhook-configurations';
    const name = `${RELEASE}-${policy}`;
    expect(refusal).toContain(
      `ValidatingAdmissionPolicy '${name}' with binding '${name}' denied request: ${theft.rule}: Startup CPU Boost `,
    );
    expect(refusal).toMatch(/^Forbidden: /);
    expect(await answer(world.client, ref, theft.patch)).toBe('');
  }

  describe.each(thieves)('of %s cannot give a pod', (thief) => {
    it.each(THEFTS_OF_A_POD)('$what', async (theft) => {
      await expectTheft(thief, victim, theft);
    });

    it.each(THEFTS_BY_RESIZE)('$what by a resize', async (theft) => {
      await expectTheft(thief, resized, theft);
    });

    it('CPU where it carries no record of a boost', async () => {
      const patch = set('/spec/containers/0/resources/requests/cpu', '300m');
      const unmarked = { ...resized, name: 'unmarked' };
      await expectTheft(thief, unmarked, { what: 'CPU', patch, rule: 'record' });
    });

    it('another status', async () => {
      const patch = set('/status/phase', 'Failed');
      expect(await answer(clientOf(thief), victim, patch)).toBe('');
      const stored = await clientOf(thief).patch(victim, { type: 'json', operations: patch });
      expect(stored.status).toMatchObject({ phase: 'Pending' });
    });
  });

  describe.each(thieves)('of %s can give a pod what boosts are made of:', (thief) => {
    it.each([
      ['the label', set(inMetadata('labels', BOOST_KEY), 'other')],
      ['no label', remove(inMetadata('labels', BOOST_KEY))],
      ...[BOOST_KEY, SKIPPED_KEY, ENDED_KEY].map((key): [string, JsonPatch] => [
        key,
        set(inMetadata('annotations', key), 'x'),
      ]),
      ['no record', remove(inMetadata('annotations', BOOST_KEY))],
    ] as [string, JsonPatch][])('%s', async (_, patch) => {
      expect(await answer(clientOf(thief), victim, patch)).toBe('');
    });

    it.each([
      ['less of a request', set('/spec/containers/0/resources/requests/cpu', '200m')],
      ['more of a request', set('/spec/containers/0/resources/requests/cpu', '300m')],
      ['another limit', set('/spec/containers/0/resources/limits/cpu', '1500m')],
    ] as [string, JsonPatch][])('%s', async (_, patch) => {
      expect(await answer(clientOf(thief), resized, patch)).toBe('');
    });

    it('its first label and annotation, and take the last ones away', async () => {
      const client = clientOf(thief);
      const name = `bare-${thief}`;
      const bare = { ...pods, name };
      await world.client.create(pods, aPod({ namespace, name, labels: {} }));
      const mark: JsonPatch = [
        ...set('/metadata/labels', { [BOOST_KEY]: 'boost' }),
        ...set('/metadata/annotations', { [BOOST_KEY]: RECORD }),
      ];
      await client.patch(bare, { type: 'json', operations: mark });
      const clear: JsonPatch = [...remove('/metadata/labels'), ...remove('/metadata/annotations')];
      await client.patch(bare, { type: 'json', operations: clear });
    });
  });

  it('is no reason to hold up our own work: the largest pod that is boosted gets its CPU back', async () => {
    const env = Array.from({ length: 40 }, (_, index) => ({
      name: `VARIABLE_${index}`,
      value: 'x'.repeat(60),
    }));
    const resources = { requests: { cpu: '2m' }, limits: { cpu: '4m' } };
    // As many as are judged at all, see MAX_CONTAINERS of the engine; near the size that etcd takes.
    const containers = Array.from({ length: 200 }, (_, index) => ({
      name: `container-${index}`,
      image: 'example/app:1',
      env,
      resources,
    }));
    const pod = aPod({ namespace, name: 'largest' });
    const annotations = { [BOOST_KEY]: RECORD };
    await world.client.create(pods, {
      ...pod,
      metadata: { ...objectAt(pod, 'metadata'), annotations },
      spec: { ...objectAt(pod, 'spec'), containers },
    });
    const lower = containers.flatMap((_, index) =>
      (['requests', 'limits'] as const).flatMap((list) =>
        set(`/spec/containers/${index}/resources/${list}/cpu`, list === 'requests' ? '1m' : '2m'),
      ),
    );
    const ref = { ...pods, name: 'largest' };
    const controller = clientOf('controller');
    expect(await answer(controller, { ...ref, subresource: 'resize' }, lower)).toBe('');
    const mark = remove(inMetadata('annotations', BOOST_KEY));
    expect(await answer(controller, ref, mark)).toBe('');
  });

  it('cannot have the API server compare metadata for seconds, which delays no revert either', async () => {
    const controller = clientOf('controller');
    const patch = remove(inMetadata('annotations', BOOST_KEY));
    await createAnnotated('many', 999);
    expect(await answer(controller, { ...pods, name: 'many' }, patch)).toBe('');
    await createAnnotated('too-many', 1_000);
    const ref = { ...pods, name: 'too-many' };
    await expectTheft('controller', ref, { what: 'its end', patch, rule: 'size' });
    const lower = set('/spec/containers/0/resources/requests/cpu', '200m');
    expect(await answer(controller, { ...ref, subresource: 'resize' }, lower)).toBe('');
  });

  /** With a record and so many other annotations. */
  async function createAnnotated(name: string, count: number): Promise<void> {
    const annotations: Record<string, string> = { [BOOST_KEY]: RECORD };
    for (let index = 0; index < count; index += 1) annotations[`a${index}`] = '';
    await world.client.create(pods, aPod({ namespace, name, annotations }));
  }

  describe.each(['mutating', 'validating'] as const)('cannot give our %s webhook', (kind) => {
    const ref = CONFIGURATIONS[kind];

    it.each(THEFTS_OF_A_WEBHOOK)('$what', async (theft) => {
      await expectTheft('controller', ref, theft);
    });

    it('another failure policy', async () => {
      const patch = set(`${WEBHOOK}/failurePolicy`, FAILURE_POLICIES[kind]);
      await expectTheft('controller', ref, { what: 'failure', patch, rule: 'webhooks' });
    });

    it('but another CA', async () => {
      const caBundle = Buffer.from((await aBundle()).certificate).toString('base64');
      const patch = set(`${WEBHOOK}/clientConfig/caBundle`, caBundle);
      expect(await answer(clientOf('controller'), ref, patch)).toBe('');
    });
  });

  function aBundle() {
    return issueAuthority({ now: Date.now(), lifetimeMs: 3_600_000 });
  }

  it('can stop the webhook for pods, and let it go on, as revert-all does', async () => {
    for (const thief of thieves) {
      const client = clientOf(thief);
      const { mutating } = CONFIGURATIONS;
      const [webhook = {}] = listAt(await world.client.get(mutating), 'webhooks');
      const last = listAt(webhook, 'matchConditions').length;
      await client.patch(mutating, {
        type: 'json',
        operations: set(`${WEBHOOK}/matchConditions/-`, STOP_MARK),
      });
      await client.patch(mutating, {
        type: 'json',
        operations: remove(`${WEBHOOK}/matchConditions/${last}`),
      });
    }
  });

  it('cannot stop the webhook for boosts', async () => {
    const patch = set(`${WEBHOOK}/matchConditions`, [STOP_MARK]);
    const theft = { what: 'stop mark', patch, rule: 'matchConditions' };
    await expectTheft('controller', CONFIGURATIONS.validating, theft);
  });
});

describe('a LimitRange that is younger than a pod adds its defaults to every resize of it', () => {
  const namespace = 'defaults';
  const pods = { ...PODS, namespace };
  const LENIENT = { namespace: 'lenient-system', release: 'lenient' } as const;
  const lower = set('/spec/containers/0/resources/requests/cpu', '200m');
  const resized: ObjectRef = { ...pods, name: 'app', subresource: 'resize' };
  let lenient: KubeClient;

  beforeAll(async () => {
    for (const name of [namespace, LENIENT.namespace]) {
      await world.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      });
    }
    const values = { fullnameOverride: LENIENT.release, 'settings.revertAnyway': true };
    await installRights(await renderChart({ namespace: LENIENT.namespace, values }));
    const path = await kubeconfigOf(world.controlPlane, {
      namespace: LENIENT.namespace,
      name: `${LENIENT.release}-controller`,
    });
    lenient = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    const small = { requests: { cpu: '250m', memory: '64Mi' } };
    const manifest = aPod({
      namespace,
      annotations: { [BOOST_KEY]: RECORD },
      containers: [aContainer({ resources: small })],
      spec: {
        initContainers: [
          aContainer({ name: 'sidecar', restartPolicy: 'Always', resources: small }),
        ],
      },
    });
    await world.client.create(pods, manifest);
    await world.client.create(
      { ...LIMIT_RANGES, namespace },
      {
        apiVersion: 'v1',
        kind: 'LimitRange',
        metadata: { name: 'late' },
        spec: { limits: [{ type: 'Container', default: { memory: '1Gi' } }] },
      },
    );
    await eventually(async () => {
      const pod = await world.client.patch(
        resized,
        { type: 'json', operations: lower },
        { dryRun: true },
      );
      expect(readPod(pod).containers[0]?.limits?.get('memory')).toBe('1Gi');
    });
  });

  afterAll(async () => {
    await lenient.close();
  });

  it('which is no work of ours, unless REVERT_ANYWAY accepts it', async () => {
    expect(await answer(clientOf('controller'), resized, lower)).toContain('containers: ');
    await eventually(async () => {
      expect(await answer(lenient, resized, lower)).toBe('');
    });
  });

  it('and then too, what the pod had stays as it is', async () => {
    const memory = set('/spec/containers/0/resources/requests/memory', '32Mi');
    await eventually(async () => {
      expect(await answer(lenient, resized, memory)).toContain('cpu: ');
    });
    const image = set('/spec/initContainers/0/image', 'evil:1');
    expect(await answer(lenient, { ...pods, name: 'app' }, image)).toContain('spec: ');
  });
});

const REVIEWS: ResourceRef = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
};

describe('what no rule is needed for, since RBAC does not grant it:', () => {
  const everyone = ACCOUNTS.map((account) => [account] as const);

  it.each(everyone)('%s', async (account) => {
    const [core, apps, rbacGroup, own] = [
      '',
      'apps',
      'rbac.authorization.k8s.io',
      'autoscaling.x-k8s.io',
    ];
    const asked: readonly (readonly [verb: string, group: string, resource: string])[] = [
      ['create', core, 'pods'],
      ['update', core, 'pods'],
      ['delete', core, 'pods'],
      ['deletecollection', core, 'pods'],
      ['patch', core, 'pods/status'],
      ['patch', core, 'pods/ephemeralcontainers'],
      ['create', core, 'pods/exec'],
      ['create', core, 'pods/eviction'],
      ['create', core, 'pods/binding'],
      ['get', core, 'pods/log'],
      ['update', core, 'pods/resize'],
      ['get', core, 'secrets'],
      ['list', core, 'secrets'],
      ['create', core, 'secrets'],
      ['create', core, 'serviceaccounts/token'],
      ['impersonate', core, 'users'],
      ['get', core, 'configmaps'],
      ['patch', core, 'nodes'],
      ['patch', core, 'namespaces'],
      ['patch', apps, 'deployments'],
      ['patch', rbacGroup, 'clusterroles'],
      ['create', rbacGroup, 'clusterrolebindings'],
      ['create', own, 'startupcpuboosts'],
      ['patch', own, 'startupcpuboosts'],
      ['delete', own, 'startupcpuboosts'],
      ['patch', 'admissionregistration.k8s.io', 'mutatingwebhookconfigurations'],
      ['create', 'admissionregistration.k8s.io', 'mutatingwebhookconfigurations'],
      ['delete', 'admissionregistration.k8s.io', 'validatingwebhookconfigurations'],
      ['patch', 'admissionregistration.k8s.io', 'validatingadmissionpolicies'],
      ['delete', 'admissionregistration.k8s.io', 'validatingadmissionpolicybindings'],
    ];
    const allowed: string[] = [];
    for (const [verb, group, path] of asked) {
      const [resource, subresource] = path.split('/');
      const { status } = await world.client.create(REVIEWS, {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: `system:serviceaccount:${NAMESPACE}:${RELEASE}-${account}`,
          groups: ['system:serviceaccounts', 'system:authenticated'],
          resourceAttributes: { verb, group, resource, subresource, namespace: 'default' },
        },
      });
      if (objectAt({ status }, 'status').allowed !== false) allowed.push(`${verb} ${path}`);
    }
    expect(allowed).toEqual([]);
  });
});
