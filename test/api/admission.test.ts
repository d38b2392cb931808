/** The webhooks behind a real API server: what is stored, and what the author of a boost is told. */
import { createServer } from 'node:https';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { NamespaceWatcher, startAdmission } from '../../src/admission';
import type { AdmissionProcess } from '../../src/admission';
import { decodeReview, encodeReview } from '../../src/admission/admissionReview';
import { BOOST_KEY, SKIPPED_KEY, fieldsOf, readPod } from '../../src/boost-engine';
import type { CpuResources, JsonPatch } from '../../src/boost-engine';
import {
  LIMIT_RANGES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  RESOURCE_QUOTAS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  createKubeClient,
  loadKubeConfig,
  systemClock,
} from '../../src/kube';
import type { JsonObject, KubeClient, ResourceRef } from '../../src/kube';
import { createMetrics, listen, portOf } from '../../src/observability';
import type { Metrics } from '../../src/observability';
import { RESOURCE_SHAPES, aBoost, aContainer, aPod, percentageIncrease } from '../support/builders';
import type { ResourceShape } from '../support/builders';
import { aCertificate, always } from '../support/certificates';
import { installCrds, startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { RecordingLogger } from '../support/recordingLogger';
import { webhookConfigurations } from '../support/webhooks';
import type { WebhookTarget } from '../support/webhooks';

const CRDS: ResourceRef = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};

const EVERY_CONTAINER: JsonObject = {
  matchContainers: { type: 'RegexName', value: '.*' },
  percentageIncrease: { value: 100 },
};

let controlPlane: ControlPlane;
let client: KubeClient;
let admissionClient: KubeClient;
let namespaces: NamespaceWatcher;
let admission: AdmissionProcess;
let target: WebhookTarget;
let metrics: Metrics;
let logger: RecordingLogger;
let namespace: string;
let count = 0;

beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
  ({ client } = controlPlane);
  const certificate = await aCertificate();
  logger = new RecordingLogger();
  metrics = createMetrics();
  const clock = systemClock();
  const kubeConfig = loadKubeConfig({ kind: 'File', path: controlPlane.kubeconfigPath });
  admissionClient = createKubeClient(kubeConfig, { clock });
  namespaces = new NamespaceWatcher({ kubeConfig, client: admissionClient, clock, logger });
  await namespaces.start();
  admission = await startAdmission({
    namespaces,
    certificates: always(certificate),
    settings: { webhookAddress: { host: '127.0.0.1', port: 0 }, drainMs: 0 },
    logger,
    metrics,
    clock,
  });
  target = {
    url: `https://127.0.0.1:${admission.port}`,
    caBundle: certificate.ca,
  };
  await eventually(() => {
    expect(admission.checks.ready.flatMap(({ problem }) => problem() ?? [])).toEqual([]);
  });
  await configure(target);
});

afterAll(async () => {
  for (const resource of [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS]) {
    await client.delete({ ...resource, name: 'startup-cpu-boost' });
  }
  await admission.stop();
  await namespaces.close();
  await admissionClient.close();
  await controlPlane.stop();
});

beforeEach(async () => {
  namespace = await newNamespace();
});

async function newNamespace(): Promise<string> {
  count += 1;
  const name = `admission-${count}`;
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await client.create(NAMESPACES, body);
  return name;
}

/** Has the API server call our webhooks; it takes up a changed configuration a moment later. */
async function configure(newTarget: WebhookTarget): Promise<void> {
  const { mutating, validating } = webhookConfigurations(newTarget);
  const fieldManager = 'admission-test';
  for (const [resource, body] of [
    [MUTATING_WEBHOOK_CONFIGURATIONS, mutating],
    [VALIDATING_WEBHOOK_CONFIGURATIONS, validating],
  ] as const) {
    const ref = { ...resource, name: 'startup-cpu-boost' };
    await client.patch(ref, { type: 'apply', body, fieldManager });
  }
}

async function createBoost(boost: JsonObject = aBoost({ namespace })): Promise<JsonObject> {
  const stored = await client.create({ ...STARTUP_CPU_BOOSTS, namespace }, boost);
  await eventually(() => {
    expect([...namespaces.view(namespace).boosts].map(({ name }) => name)).toContain(
      readPod(stored).name,
    );
  });
  // The API server may not have taken up the webhook yet.
  await eventually(async () => {
    expect(readPod(await tryPod(aPod({ namespace, name: 'probe' }))).annotations).toBeDefined();
  });
  return stored;
}

/** As `create`, but nothing is stored. */
async function tryPod(pod: JsonObject): Promise<JsonObject> {
  return client.create({ ...PODS, namespace }, pod, { dryRun: true });
}

async function create(pod: JsonObject): Promise<JsonObject> {
  const stored = await client.create({ ...PODS, namespace }, pod);
  const { name = '' } = readPod(stored);
  return client.get({ ...PODS, namespace, name });
}

function cpuOf(pod: JsonObject): Readonly<Record<string, CpuResources>> {
  return Object.fromEntries(readPod(pod).containers.map(({ name, cpu }) => [name, cpu]));
}

function annotationOf(pod: JsonObject, key: string): string | undefined {
  return readPod(pod).annotations?.get(key);
}

function recordOf(pod: JsonObject): unknown {
  return JSON.parse(annotationOf(pod, BOOST_KEY) ?? 'null');
}

function qosClassOf(pod: JsonObject): unknown {
  return fieldsOf(pod.status).get('qosClass');
}

async function countOf(result: string): Promise<number> {
  const { values } = await metrics.admissionRequests.get();
  return values.find(({ labels }) => labels.result === result)?.value ?? 0;
}

interface Expected {
  readonly cpu: CpuResources;
  readonly qosClass: string;
  readonly skipped?: string;
}

describe('a pod that a boost selects is stored', () => {
  it.each<[ResourceShape, Expected]>([
    ['request and limit', { cpu: { request: '500m', limit: '2' }, qosClass: 'Burstable' }],
    ['request only', { cpu: { request: '500m' }, qosClass: 'Burstable' }],
    ['limit only', { cpu: { request: '1', limit: '1' }, qosClass: 'Burstable' }],
    ['memory only', { cpu: {}, qosClass: 'Burstable', skipped: 'NoCpu' }],
    ['Guaranteed', { cpu: { request: '1', limit: '1' }, qosClass: 'Guaranteed' }],
    ['BestEffort', { cpu: {}, qosClass: 'BestEffort', skipped: 'NoCpu' }],
  ])('with twice its CPU and its own QoS class: %s', async (shape, expected) => {
    await createBoost();
    const resources = RESOURCE_SHAPES[shape];
    const pod = await create(aPod({ namespace, containers: [aContainer({ resources })] }));
    expect(cpuOf(pod)).toEqual({ app: expected.cpu });
    expect(qosClassOf(pod)).toBe(expected.qosClass);
    expect(annotationOf(pod, SKIPPED_KEY)).toBe(expected.skipped);
    expect(readPod(pod).labels?.get(BOOST_KEY)).toBe(
      expected.skipped === undefined ? 'boost' : undefined,
    );
  });

  it('with a record from which every process can give the CPU back', async () => {
    const boost = await createBoost();
    const pod = await create(aPod({ namespace }));
    expect(recordOf(pod)).toEqual({
      state: 'Active',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
      boostedCPURequests: { app: '500m' },
      boostedCPULimits: { app: '2' },
      uid: readPod(boost).uid,
      generation: 1,
    });
  });

  it('with memory, and all else, untouched', async () => {
    await createBoost();
    const pod = await create(aPod({ namespace }));
    const plain = await create(aPod({ namespace, name: 'plain', labels: {} }));
    const memoryOf = (object: JsonObject) =>
      readPod(object).containers.map(({ requests, limits }) => [
        requests?.get('memory'),
        limits?.get('memory'),
      ]);
    expect(memoryOf(pod)).toEqual(memoryOf(plain));
    const { containers: boosted, ...spec } = { ...fieldsToObject(pod.spec) };
    const { containers: original, ...plainSpec } = { ...fieldsToObject(plain.spec) };
    expect(spec).toEqual(plainSpec);
    expect(boosted).toHaveLength(1);
    expect(original).toHaveLength(1);
  });

  it('with only the CPU of the containers that a policy names', async () => {
    const containerPolicies = [
      {
        matchContainers: { type: 'RegexName', value: '^(app|worker-[0-9]+)$' },
        percentageIncrease: { value: 50 },
      },
      {
        matchContainers: { type: 'ExactName', value: 'init-db' },
        fixedResources: { requests: '3', limits: '4' },
      },
    ];
    await createBoost(aBoost({ namespace, containerPolicies }));
    const containers = ['app', 'worker-7', 'worker-x', 'init-db'].map((name) =>
      aContainer({ name }),
    );
    expect(cpuOf(await create(aPod({ namespace, containers })))).toEqual({
      app: { request: '375m', limit: '1500m' },
      'worker-7': { request: '375m', limit: '1500m' },
      'worker-x': { request: '250m', limit: '1' },
      'init-db': { request: '3', limit: '4' },
    });
  });

  it('from a template that names no pod, as a ReplicaSet has', async () => {
    await createBoost();
    const pod = await create(
      aPod({ namespace, metadata: { name: undefined, generateName: 'app-7d4b9-' } }),
    );
    expect(cpuOf(pod)).toEqual({ app: { request: '500m', limit: '2' } });
  });

  it('with the CPU that a LimitRange gives by default doubled', async () => {
    await createLimitRange({ default: { cpu: '400m' }, defaultRequest: { cpu: '100m' } });
    await createBoost();
    const containers = [aContainer({ resources: {} })];
    expect(cpuOf(await create(aPod({ namespace, containers })))).toEqual({
      app: { request: '200m', limit: '800m' },
    });
  });
});

describe('a pod is stored as it was', () => {
  it('where no boost selects it', async () => {
    await createBoost();
    const pod = await create(aPod({ namespace, labels: { app: 'other' } }));
    expect(cpuOf(pod)).toEqual({ app: { request: '250m', limit: '1' } });
    expect(readPod(pod).annotations).toBeUndefined();
  });

  it('where giving the CPU back would restart the container', async () => {
    await createBoost();
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await expectSkip(aPod({ namespace, containers: [aContainer({ resizePolicy })] }), {
      code: 'RestartsOnResize',
    });
  });

  it('where a LimitRange does not allow the boost', async () => {
    await createLimitRange({ max: { cpu: '1500m' } });
    await createBoost();
    await expectSkip(aPod({ namespace }), { code: 'LimitRangeExceeded' });
  });

  it('where a ResourceQuota counts its CPU', async () => {
    const hard = { 'requests.cpu': '1', 'limits.cpu': '4' };
    const quota = await client.create(
      { ...RESOURCE_QUOTAS, namespace },
      { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'cpu' }, spec: { hard } },
    );
    // What the controller manager would do.
    const used = { 'requests.cpu': '0', 'limits.cpu': '0' };
    await client.replace(
      { ...RESOURCE_QUOTAS, namespace, name: 'cpu', subresource: 'status' },
      { ...quota, status: { hard, used } },
    );
    await eventually(() => {
      expect(namespaces.view(namespace).quotas).toHaveLength(1);
    });
    await createBoost();
    await expectSkip(aPod({ namespace }), { code: 'QuotaPresent' });
  });

  async function expectSkip(pod: JsonObject, { code }: { readonly code: string }): Promise<void> {
    const stored = await create(pod);
    expect(cpuOf(stored)).toEqual({ app: { request: '250m', limit: '1' } });
    expect(annotationOf(stored, SKIPPED_KEY)).toBe(code);
    expect(annotationOf(stored, BOOST_KEY)).toBeUndefined();
    expect(readPod(stored).labels?.has(BOOST_KEY)).toBe(false);
  }
});

describe('a dry run', () => {
  it('shows the boost, and counts none', async () => {
    await createBoost();
    const [boosts, dryRuns] = [await countOf('Boost'), await countOf('DryRun')];
    expect(cpuOf(await tryPod(aPod({ namespace })))).toEqual({
      app: { request: '500m', limit: '2' },
    });
    expect(await countOf('Boost')).toBe(boosts);
    expect(await countOf('DryRun')).toBe(dryRuns + 1);
  });
});

describe('beside another mutating webhook', () => {
  let injector: Injector;
  beforeAll(async () => {
    injector = await startInjector();
  });
  afterAll(async () => {
    await injector.stop();
  });

  // Webhooks are called in the order of their configurations' names: ours is startup-cpu-boost.
  it.each(['a-injector', 'z-injector'])(
    'a container that %s adds is boosted, and no container twice',
    async (name) => {
      await createBoost(aBoost({ namespace, containerPolicies: [EVERY_CONTAINER] }));
      await injector.install(name, namespace);
      const pod = await create(aPod({ namespace }));
      expect(cpuOf(pod)).toEqual({
        app: { request: '500m', limit: '2' },
        proxy: { request: '200m' },
      });
      expect(recordOf(pod)).toMatchObject({
        initCPURequests: { app: '250m', proxy: '100m' },
        initCPULimits: { app: '1' },
        boostedCPURequests: { app: '500m', proxy: '200m' },
        boostedCPULimits: { app: '2' },
      });
    },
  );

  it('no reason for skipping is left on a pod that the second call boosts', async () => {
    await createBoost(aBoost({ namespace, containerPolicies: [percentageIncrease('proxy', 100)] }));
    await injector.install('z-injector', namespace);
    const pod = await create(aPod({ namespace }));
    expect(cpuOf(pod)).toMatchObject({ proxy: { request: '200m' } });
    expect(annotationOf(pod, SKIPPED_KEY)).toBeUndefined();
  });

  it('a pod keeps its originals where an older boost comes to select it', async () => {
    const older = aBoost({
      namespace,
      name: 'a-older-boost',
      selector: { matchLabels: { tier: 'injected' } },
      containerPolicies: [percentageIncrease('app', 200)],
    });
    await client.create({ ...STARTUP_CPU_BOOSTS, namespace }, older);
    await createBoost();
    await injector.install('z-injector', namespace, [
      { op: 'add', path: '/metadata/labels/tier', value: 'injected' },
    ]);
    const pod = await create(aPod({ namespace }));
    expect(cpuOf(pod)).toMatchObject({ app: { request: '750m', limit: '3' } });
    expect(recordOf(pod)).toMatchObject({
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
    });
  });

  it('a pod that may not be boosted after all is stored as it was', async () => {
    await createBoost();
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await injector.install('z-injector', namespace, [
      { op: 'add', path: '/spec/containers/0/resizePolicy', value: resizePolicy },
    ]);
    const pod = await create(aPod({ namespace }));
    expect(cpuOf(pod)).toMatchObject({ app: { request: '250m', limit: '1' } });
    expect(annotationOf(pod, SKIPPED_KEY)).toBe('RestartsOnResize');
    expect(annotationOf(pod, BOOST_KEY)).toBeUndefined();
    expect(readPod(pod).labels?.has(BOOST_KEY)).toBe(false);
  });
});

describe('a boost that is applied', () => {
  it('changes the very next pods', async () => {
    await createBoost();
    await client.patch(
      { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' },
      {
        type: 'merge',
        body: {
          spec: { resourcePolicy: { containerPolicies: [percentageIncrease('app', 300)] } },
        },
      },
    );
    await eventually(async () => {
      expect(cpuOf(await tryPod(aPod({ namespace })))).toEqual({
        app: { request: '1', limit: '4' },
      });
    });
  });

  it('can be deleted, and boosts no pod any more', async () => {
    await createBoost();
    await client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });
    await eventually(async () => {
      expect(cpuOf(await tryPod(aPod({ namespace })))).toEqual({
        app: { request: '250m', limit: '1' },
      });
    });
  });
});

/** Such as a definition of google/kube-startup-cpu-boost, which has fewer rules than ours. */
describe('behind a definition without rules, a boost that could not work', () => {
  const containerPolicies = [
    { matchContainers: { type: 'RegexName', value: '^app(' }, percentageIncrease: { value: 100 } },
  ];
  const refusal = {
    failure: {
      status: 422,
      reason: 'Invalid',
      message: expect.stringMatching(
        /admission webhook "vstartupcpuboost\.autoscaling\.x-k8s\.io" denied the request: spec\.resourcePolicy\.containerPolicies\[0\]\.matchContainers\.value .*RE2/,
      ),
    },
  };

  beforeAll(async () => {
    await dropRules();
  });
  afterAll(async () => {
    await installCrds(client);
  });

  it('is refused, and its author reads why', async () => {
    const bad = aBoost({ namespace, name: 'bad', containerPolicies });
    await eventually(async () => {
      const creation = client.create({ ...STARTUP_CPU_BOOSTS, namespace }, bad, { dryRun: true });
      await expect(creation).rejects.toMatchObject(refusal);
    });
  });

  it('is refused as an edit of a good one, which stays as it was', async () => {
    await createBoost();
    const ref = { ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' };
    const body = { spec: { resourcePolicy: { containerPolicies } } };
    await expect(client.patch(ref, { type: 'merge', body })).rejects.toMatchObject(refusal);
    expect(fieldsOf((await client.get(ref)).metadata).get('generation')).toBe(1);
  });
});

describe('while the webhook', () => {
  afterAll(async () => {
    await configure(target);
  });

  it('cannot be trusted, pods are created unboosted and our log says what to look at', async () => {
    await createBoost();
    const other = await aCertificate();
    await configure({ ...target, caBundle: other.ca });
    await expectUnboosted();
    await eventually(() => {
      expect(logger.lines).toContainEqual(
        expect.objectContaining({
          level: 'warn',
          message: expect.stringContaining('caBundle of the webhooks must be the CA of it'),
        }),
      );
    });
  });

  it('cannot be reached, pods are created unboosted', async () => {
    await configure(target);
    await createBoost();
    await configure({ ...target, url: 'https://127.0.0.1:1' });
    await expectUnboosted();
  });

  async function expectUnboosted(): Promise<void> {
    const pod = aPod({ namespace });
    await eventually(async () => {
      expect(cpuOf(await tryPod(pod))).toEqual({ app: { request: '250m', limit: '1' } });
    });
    expect(cpuOf(await create(pod))).toEqual({ app: { request: '250m', limit: '1' } });
  }
});

/** The whole life of the process: at its end no review is lost. */
describe('when admission stops', () => {
  it('it is not ready, and its connections end', async () => {
    await createBoost();
    await admission.stop();
    expect(admission.checks.ready.flatMap(({ problem }) => problem() ?? [])).toEqual([
      'shutting down',
    ]);
    expect(cpuOf(await create(aPod({ namespace })))).toEqual({
      app: { request: '250m', limit: '1' },
    });
  });
});

async function dropRules(): Promise<void> {
  const { group, version, plural } = STARTUP_CPU_BOOSTS;
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  await client.patch(
    { ...CRDS, name: `${plural}.${group}` },
    {
      type: 'merge',
      body: {
        spec: {
          versions: [
            { name: version, served: true, storage: true, schema, subresources: { status: {} } },
          ],
        },
      },
    },
  );
}

async function createLimitRange(limits: JsonObject): Promise<void> {
  await client.create(
    { ...LIMIT_RANGES, namespace },
    {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'cpu' },
      spec: { limits: [{ type: 'Container', ...limits }] },
    },
  );
  await eventually(() => {
    expect(namespaces.view(namespace).limitRanges).toHaveLength(1);
  });
}

function fieldsToObject(value: unknown): JsonObject {
  return Object.fromEntries(fieldsOf(value));
}

interface Injector {
  /**
   * Has the API server call it for pods of the namespace, and returns once it does.
   *
   * @param more what it changes besides, the same however often it is called
   */
  install(name: string, inNamespace: string, more?: JsonPatch): Promise<void>;
  stop(): Promise<void>;
}

/** A stranger's webhook, which adds a container to every pod that has none of its name. */
async function startInjector(): Promise<Injector> {
  const { certificate, key, ca } = await aCertificate();
  const patch: JsonPatch = [
    {
      op: 'add',
      path: '/spec/containers/-',
      value: aContainer({ name: 'proxy', resources: { requests: { cpu: '100m' } } }),
    },
  ];
  const besides = new Map<string, JsonPatch>();
  const server = createServer({ cert: certificate, key }, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      const review = decodeReview(JSON.parse(body));
      if (review.kind === 'Malformed') throw new Error(review.why);
      const { uid, object, namespace: of } = review.request;
      const isThere = readPod(object).containers.some(({ name }) => name === 'proxy');
      response.setHeader('Content-Type', 'application/json');
      const changes = [...(isThere ? [] : patch), ...(besides.get(of) ?? [])];
      response.end(JSON.stringify(encodeReview(uid, { allowed: true, patch: changes })));
    });
  });
  await listen(server, { host: '127.0.0.1', port: 0 });
  const url = `https://127.0.0.1:${portOf(server)}`;
  return {
    async install(name, inNamespace, more = []) {
      besides.set(inNamespace, more);
      const { mutating } = webhookConfigurations({ url, caBundle: ca, namespaces: [inNamespace] });
      await client.patch(
        { ...MUTATING_WEBHOOK_CONFIGURATIONS, name },
        {
          type: 'apply',
          body: { ...mutating, metadata: { name } },
          fieldManager: 'admission-test',
        },
      );
      await eventually(async () => {
        expect(readPod(await tryPod(aPod({ namespace: inNamespace }))).containers).toHaveLength(2);
      });
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
}
