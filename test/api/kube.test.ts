/** The client, the watch and the operator shell against a real API server. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ResourceEvent } from '@dot-i/k8s-operator';
import { parse } from 'yaml';
import { z } from 'zod';
import {
  ApiError,
  NAMESPACES,
  PODS,
  ResilientOperator,
  ResourceWatch,
  STARTUP_CPU_BOOSTS,
  createKubeClient,
  failureAction,
  identityOf,
  loadKubeConfig,
  systemClock,
} from '../../src/kube';
import type {
  ApiFailure,
  JsonObject,
  KubeClient,
  ObjectRef,
  ResilientOperatorOptions,
  ResourceRef,
  WatchEvent,
} from '../../src/kube';
import { createLogger } from '../../src/observability';
import { aBoost, aContainer, aPod } from '../support/builders';
import { startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { ManualClock } from '../support/manualClock';
import { TcpProxy } from '../support/tcpProxy';

const CONFIG_MAPS: ResourceRef = { group: '', version: 'v1', plural: 'configmaps' };

const kubeconfigSchema = z.looseObject({
  clusters: z.tuple([
    z.looseObject({ name: z.string(), cluster: z.looseObject({ server: z.url() }) }),
  ]),
  users: z.tuple([z.looseObject({ name: z.string(), user: z.looseObject({}) })]),
});

let controlPlane: ControlPlane;
let client: KubeClient;
let namespaces = 0;

beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
  client = controlPlane.client;
});

afterAll(async () => {
  await controlPlane.stop();
});

/** A namespace of its own for each test. */
async function aNamespace(): Promise<string> {
  namespaces += 1;
  const name = `kube-${process.pid}-${namespaces}`;
  const metadata = { name };
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  return name;
}

async function createConfigMap(
  namespace: string,
  name: string,
  rest: JsonObject = {},
): Promise<ObjectRef & { readonly created: JsonObject }> {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...rest };
  const created = await client.create({ ...CONFIG_MAPS, namespace }, body);
  return { ...CONFIG_MAPS, namespace, name, created };
}

async function createPod(namespace: string, name: string): Promise<ObjectRef> {
  const containers = [aContainer({ resources: { requests: { cpu: '500m' } } })];
  await client.create({ ...PODS, namespace }, aPod({ name, namespace, containers }));
  return { ...PODS, namespace, name };
}

async function failureOf(call: Promise<unknown>): Promise<ApiFailure> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error.failure;
    throw error;
  }
  throw new Error('the call did not fail');
}

/** A kubeconfig of the same cluster with some of it replaced. */
async function writeKubeconfig(
  file: string,
  replaced: { readonly cluster?: JsonObject; readonly user?: JsonObject },
): Promise<string> {
  const config = kubeconfigSchema.parse(parse(await readFile(controlPlane.kubeconfigPath, 'utf8')));
  const [cluster] = config.clusters;
  const [user] = config.users;
  const path = join(controlPlane.dir, file);
  await writeFile(
    path,
    JSON.stringify({
      ...config,
      clusters: [{ ...cluster, cluster: replaced.cluster ?? cluster.cluster }],
      users: [{ ...user, user: replaced.user ?? user.user }],
    }),
  );
  return path;
}

async function clusterOf(path: string): Promise<z.infer<typeof kubeconfigSchema>> {
  return kubeconfigSchema.parse(parse(await readFile(path, 'utf8')));
}

describe('a patch', () => {
  it('of each kind does what its kind means', async () => {
    const namespace = await aNamespace();
    const map = await createConfigMap(namespace, 'map', { data: { a: '1', b: '2' } });
    await client.patch(map, {
      type: 'json',
      operations: [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'replace', path: '/data/a', value: '3' },
      ],
    });
    await client.patch(map, { type: 'merge', body: { data: { b: null } } });
    await client.patch(map, { type: 'strategic', body: { data: { c: '4' } } });
    const applied = await client.patch(map, {
      type: 'apply',
      fieldManager: 'test',
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'map' }, data: { c: '5' } },
    });
    expect(applied.data).toEqual({ a: '3', c: '5' });
  });

  it('of pods/resize changes CPU, and nothing once the value is another', async () => {
    const pod = await createPod(await aNamespace(), 'web');
    const resize = { ...pod, subresource: 'resize' };
    const path = '/spec/containers/0/resources/requests/cpu';
    const patch = {
      type: 'json',
      operations: [
        { op: 'test', path, value: '500m' },
        { op: 'replace', path, value: '250m' },
      ],
    } as const;
    const resized = await client.patch(resize, patch);
    expect(resized).toMatchObject({
      spec: { containers: [{ resources: { requests: { cpu: '250m' } } }] },
    });
    const failure = await failureOf(client.patch(resize, patch));
    expect(failure).toMatchObject({ kind: 'TestFailed', status: 422 });
    expect(failureAction(failure)).toEqual({ kind: 'Retry' });
  });

  it('of pods/resize that validation refuses is told from one whose test failed', async () => {
    const pod = await createPod(await aNamespace(), 'web');
    const failure = await failureOf(
      client.patch(
        { ...pod, subresource: 'resize' },
        {
          type: 'json',
          operations: [{ op: 'remove', path: '/spec/containers/0/resources/requests/cpu' }],
        },
      ),
    );
    expect(failure).toMatchObject({ kind: 'Invalid', status: 422 });
    expect(failureAction(failure)).toEqual({ kind: 'Terminal' });
  });

  it('for an object that took over the name is dropped', async () => {
    const pod = await createPod(await aNamespace(), 'web');
    const body = { metadata: { uid: '11111111-2222-3333-4444-555555555555' } };
    const failure = await failureOf(
      client.patch({ ...pod, subresource: 'resize' }, { type: 'strategic', body }),
    );
    expect(failureAction(failure)).toEqual({ kind: 'Drop' });
  });

  it('of a version that is no longer stored is a conflict', async () => {
    const map = await createConfigMap(await aNamespace(), 'map');
    const { resourceVersion } = identityOf(map.created) ?? {};
    await client.patch(map, { type: 'merge', body: { data: { a: '1' } } });
    const stale = { metadata: { resourceVersion }, data: { a: '2' } };
    const failure = await failureOf(client.patch(map, { type: 'merge', body: stale }));
    expect(failure).toMatchObject({ kind: 'Conflict', reason: 'Conflict', status: 409 });
  });
});

describe('other writes', () => {
  it('tell what is missing from what is there already', async () => {
    const namespace = await aNamespace();
    await createConfigMap(namespace, 'map');
    const missing = { ...CONFIG_MAPS, namespace, name: 'other' };
    expect(await failureOf(client.get(missing))).toMatchObject({ kind: 'NotFound' });
    expect(await failureOf(createConfigMap(namespace, 'map'))).toMatchObject({
      kind: 'AlreadyExists',
    });
  });

  it('store nothing in a dry run', async () => {
    const namespace = await aNamespace();
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'map' } };
    await client.create({ ...CONFIG_MAPS, namespace }, body, { dryRun: true });
    expect((await client.list(CONFIG_MAPS, { namespace })).items).toEqual([]);
  });

  it('delete the object with the uid that was meant, and no other', async () => {
    const map = await createConfigMap(await aNamespace(), 'map');
    const { uid = '' } = identityOf(map.created) ?? {};
    expect(await failureOf(client.delete(map, { uid: 'another' }))).toMatchObject({
      kind: 'Conflict',
    });
    await client.delete(map, { uid });
    expect(await failureOf(client.get(map))).toMatchObject({ kind: 'NotFound' });
  });

  it('replace an object that has not changed since', async () => {
    const map = await createConfigMap(await aNamespace(), 'map');
    const changed = { ...map.created, data: { a: '1' } };
    expect(await client.replace(map, changed)).toMatchObject({ data: { a: '1' } });
    expect(await failureOf(client.replace(map, changed))).toMatchObject({ kind: 'Conflict' });
  });
});

describe('lists and discovery', () => {
  it('come in pages whose items have their kind', async () => {
    const namespace = await aNamespace();
    for (const name of ['a', 'b', 'c']) await createConfigMap(namespace, name);
    const first = await client.list(CONFIG_MAPS, { namespace, limit: 2 });
    expect(first.items).toMatchObject([{ kind: 'ConfigMap', apiVersion: 'v1' }, {}]);
    const { continue: token = '' } = first;
    const second = await client.list(CONFIG_MAPS, { namespace, limit: 2, continue: token });
    expect(second.items).toMatchObject([{ metadata: { name: 'c' } }]);
    expect(second.continue).toBeUndefined();
  });

  it('show a collection as it was at a version', async () => {
    const namespace = await aNamespace();
    await createConfigMap(namespace, 'a');
    const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace });
    await createConfigMap(namespace, 'b');
    const then = await client.list(CONFIG_MAPS, {
      namespace,
      exactResourceVersion: resourceVersion,
    });
    expect(then.items).toMatchObject([{ metadata: { name: 'a' } }]);
  });

  it('know which resources the server has', async () => {
    const unknown = { ...STARTUP_CPU_BOOSTS, plural: 'shutdowncpuboosts' };
    expect(await client.serves(PODS)).toBe(true);
    expect(await client.serves(STARTUP_CPU_BOOSTS)).toBe(true);
    expect(await client.serves(unknown)).toBe(false);
    expect(await client.serves({ ...unknown, group: 'nowhere.example' })).toBe(false);
    expect(await failureOf(client.list(unknown))).toMatchObject({ kind: 'NotFound' });
  });

  it('refuse to watch from a version that is too old for the server', async () => {
    // The definition was made after version 1, so what the server remembers of boosts begins later.
    const options = { resourceVersion: '1', timeoutSeconds: 5 };
    const read = async (): Promise<void> => {
      for await (const event of client.watch(STARTUP_CPU_BOOSTS, options)) {
        throw new Error(`an event: ${event.type}`);
      }
    };
    expect(await failureOf(read())).toMatchObject({ kind: 'Gone', reason: 'Expired' });
  });
});

describe('a watch', () => {
  it('brings what happened after its version, and ends when its time is over', async () => {
    const namespace = await aNamespace();
    const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace });
    const map = await createConfigMap(namespace, 'map');
    const patched = await client.patch(map, { type: 'merge', body: { data: { a: '1' } } });
    await client.delete(map);
    const seen: WatchEvent[] = [];
    const options = { namespace, resourceVersion, timeoutSeconds: 2 };
    for await (const event of client.watch(CONFIG_MAPS, options)) seen.push(event);
    expect(seen.filter(({ type }) => type !== 'BOOKMARK')).toMatchObject([
      { type: 'ADDED', object: map.created },
      { type: 'MODIFIED', object: patched },
      { type: 'DELETED', object: { metadata: { name: 'map' } } },
    ]);
  });

  it('of a part of the collection brings what enters and leaves it', async () => {
    const namespace = await aNamespace();
    const selection = { namespace, labelSelector: 'tier=web' };
    const { resourceVersion } = await client.list(CONFIG_MAPS, selection);
    const map = await createConfigMap(namespace, 'map');
    for (const tier of ['web', 'db']) {
      await client.patch(map, { type: 'merge', body: { metadata: { labels: { tier } } } });
    }
    const seen: string[] = [];
    const options = { ...selection, resourceVersion, timeoutSeconds: 30 };
    for await (const { type } of client.watch(CONFIG_MAPS, options)) {
      seen.push(type);
      if (type === 'DELETED') break;
    }
    expect(seen).toEqual(['ADDED', 'DELETED']);
  });
});

describe('credentials', () => {
  it('are read anew after a 401, once, and the call is repeated', async () => {
    const name = 'rotated';
    const path = await writeKubeconfig(name, { user: { token: 'expired' } });
    const own = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    const ref = { ...NAMESPACES, name: 'default' };
    expect(await failureOf(own.get(ref))).toMatchObject({ kind: 'Unauthorized' });
    await writeKubeconfig(name, {});
    expect(await own.get(ref)).toMatchObject({ kind: 'Namespace' });
    await own.close();
  });

  it('make new connections when the file of the CA has changed', async () => {
    const { clusters, users } = await clusterOf(controlPlane.kubeconfigPath);
    const pem = z.looseObject({ 'certificate-authority-data': z.base64() });
    const ca = pem.parse(clusters[0].cluster)['certificate-authority-data'];
    const other = z.looseObject({ 'client-certificate-data': z.base64() });
    const notTheCa = other.parse(users[0].user)['client-certificate-data'];
    const caFile = join(controlPlane.dir, 'ca.crt');
    await writeFile(caFile, Buffer.from(notTheCa, 'base64'));
    const { server } = clusters[0].cluster;
    const path = await writeKubeconfig('ca', {
      cluster: { server, 'certificate-authority': caFile },
    });
    const clock = new ManualClock();
    const own = createKubeClient(loadKubeConfig({ kind: 'File', path }), { clock });
    const ref = { ...NAMESPACES, name: 'default' };
    expect(await failureOf(own.get(ref))).toMatchObject({ kind: 'Network' });
    await writeFile(caFile, Buffer.from(ca, 'base64'));
    await clock.advance(10_000);
    expect(await own.get(ref)).toMatchObject({ kind: 'Namespace' });
    await own.close();
  });

  it('of nobody in particular are refused', async () => {
    const path = await writeKubeconfig('anonymous', { user: {} });
    const own = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    const failure = await failureOf(own.list(PODS));
    expect(['Forbidden', 'Unauthorized']).toContain(failure.kind);
    await own.close();
  });
});

describe('connections', () => {
  it('from before a call that got no answer are not used again: they may all be silent', async () => {
    const { clusters } = await clusterOf(controlPlane.kubeconfigPath);
    const proxy = await TcpProxy.start(Number(new URL(clusters[0].cluster.server).port));
    const path = await writeKubeconfig('silent', {
      cluster: { ...clusters[0].cluster, server: `https://127.0.0.1:${proxy.port}` },
    });
    const own = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    const ref = { ...NAMESPACES, name: 'default' };
    const atOnce = (): Promise<unknown> =>
      Promise.all(Array.from({ length: 8 }, () => own.get(ref)));
    await atOnce();
    const before = proxy.connections;
    proxy.stall();
    expect(await failureOf(own.get(ref, { timeoutMs: 200 }))).toMatchObject({ kind: 'Timeout' });

    await atOnce();
    expect(proxy.connections).toBeGreaterThan(before);
    await proxy.stop();
    await own.close();
  });
});

describe('a resource watch', () => {
  it('resumes after a cut, misses nothing and tells nothing twice', async () => {
    const namespace = await aNamespace();
    const { clusters } = await clusterOf(controlPlane.kubeconfigPath);
    const proxy = await TcpProxy.start(Number(new URL(clusters[0].cluster.server).port));
    const path = await writeKubeconfig('proxied', {
      cluster: { ...clusters[0].cluster, server: `https://127.0.0.1:${proxy.port}` },
    });
    const own = createKubeClient(loadKubeConfig({ kind: 'File', path }));
    const seen: string[] = [];
    await createConfigMap(namespace, 'kept');
    const gone = await createConfigMap(namespace, 'gone');
    const watch = new ResourceWatch({
      client: own,
      clock: systemClock(),
      logger: createLogger('silent', {}),
      resource: CONFIG_MAPS,
      selection: { namespace },
      onEvent: ({ type, object }) => void seen.push(`${type} ${identityOf(object)?.name ?? ''}`),
    });
    watch.start();
    await watch.synced;
    expect(seen.splice(0)).toEqual(['ADDED gone', 'ADDED kept']);

    // The stream has to be open when it is cut.
    await createConfigMap(namespace, 'live');
    await eventually(() => {
      expect(seen).toEqual(['ADDED live']);
    });
    proxy.cut();
    await client.delete(gone);
    await createConfigMap(namespace, 'gone');
    await createConfigMap(namespace, 'new');
    proxy.mend();
    await eventually(() => {
      expect(seen).toEqual(['ADDED live', 'DELETED gone', 'ADDED gone', 'ADDED new']);
    });
    expect(watch.cache.listNamespace(namespace)).toHaveLength(4);
    expect(watch.stats()).toMatchObject({ relists: 0, drift: 0 });
    expect(watch.stats().failures).toBeGreaterThan(0);
    await watch.stop();
    await own.close();
    await proxy.stop();
  });

  it('finds no drift when nothing was lost, however busy the collection is', async () => {
    const namespace = await aNamespace();
    const map = await createConfigMap(namespace, 'map');
    const watch = new ResourceWatch({
      client,
      clock: systemClock(),
      logger: createLogger('silent', {}),
      resource: CONFIG_MAPS,
      selection: { namespace },
      onEvent: () => undefined,
      checkEveryMs: 30,
    });
    watch.start();
    await watch.synced;
    for (let value = 0; value < 60; value += 1) {
      await client.patch(map, { type: 'merge', body: { data: { value: String(value) } } });
    }
    await eventually(() => {
      expect(watch.cache.get(namespace, 'map')).toMatchObject({ data: { value: '59' } });
    });
    expect(watch.stats()).toMatchObject({ relists: 0, drift: 0, failures: 0 });
    await watch.stop();
  });

  it('takes a resource up that is installed later', async () => {
    const plural = 'widgets';
    const group = `late-${process.pid}.example`;
    const clock = new ManualClock();
    const seen: string[] = [];
    const watch = new ResourceWatch({
      client,
      clock,
      logger: createLogger('silent', {}),
      resource: { group, version: 'v1', plural },
      onEvent: ({ type }) => void seen.push(type),
    });
    watch.start();
    await watch.synced;
    expect(watch.cache.size).toBe(0);
    await client.create(
      { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' },
      widgetDefinition(group, plural),
    );
    const widget = { apiVersion: `${group}/v1`, kind: 'Widget', metadata: { name: 'one' } };
    await eventually(() => client.create({ group, version: 'v1', plural }, widget));
    await eventually(async () => {
      await clock.advance(30_000);
      expect(seen).toEqual(['ADDED']);
    });
    await watch.stop();
  });
});

function widgetDefinition(group: string, plural: string): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural, singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      ],
    },
  };
}

const FINALIZER = 'test.example/hold';

/** Written as the SDK's own examples are. */
class ExampleOperator extends ResilientOperator {
  readonly events: string[] = [];
  readonly released: string[] = [];
  #latest: ResourceEvent | undefined;
  readonly #namespaces: readonly string[];

  constructor(options: ResilientOperatorOptions, namespaces: readonly string[]) {
    super(options);
    this.#namespaces = namespaces;
  }

  protected async init(): Promise<void> {
    const { group, version, plural } = STARTUP_CPU_BOOSTS;
    for (const namespace of this.#namespaces) {
      await this.watchResource(group, version, plural, (event) => this.#onEvent(event), namespace);
    }
  }

  get latest(): ResourceEvent {
    if (this.#latest === undefined) throw new Error('no event yet');
    return this.#latest;
  }

  setStatus(event: ResourceEvent, status: JsonObject): Promise<unknown> {
    return this.setResourceStatus(event.meta, status);
  }

  patchStatus(event: ResourceEvent, status: JsonObject): Promise<unknown> {
    return this.patchResourceStatus(event.meta, status);
  }

  setFinalizers(event: ResourceEvent, finalizers: string[]): Promise<void> {
    return this.setResourceFinalizers(event.meta, finalizers);
  }

  register(file: string): Promise<unknown> {
    return this.registerCustomResourceDefinition(file);
  }

  uriOfPods(): string {
    return this.getCustomResourceApiUri('', 'v1', 'pods', 'shop');
  }

  async #onEvent(event: ResourceEvent): Promise<void> {
    this.#latest = event;
    this.events.push(`${event.type} ${event.meta.namespace ?? ''}`);
    await this.handleResourceFinalizer(event, FINALIZER, ({ meta }) => {
      this.released.push(meta.name);
      return Promise.resolve();
    });
  }
}

describe('an operator on the SDK', () => {
  async function start(namespaces: readonly string[]): Promise<ExampleOperator> {
    const kubeConfig = loadKubeConfig({ kind: 'File', path: controlPlane.kubeconfigPath });
    const logger = createLogger('silent', {});
    const operator = new ExampleOperator(
      { kubeConfig, client, clock: systemClock(), logger },
      namespaces,
    );
    await operator.start();
    return operator;
  }

  async function createBoost(namespace: string): Promise<ObjectRef> {
    await client.create({ ...STARTUP_CPU_BOOSTS, namespace }, aBoost({ name: 'jvm', namespace }));
    return { ...STARTUP_CPU_BOOSTS, namespace, name: 'jvm' };
  }

  it('watches one resource in two namespaces', async () => {
    const namespaces = [await aNamespace(), await aNamespace()];
    const operator = await start(namespaces);
    for (const namespace of namespaces) await createBoost(namespace);
    await eventually(() => {
      for (const namespace of namespaces) expect(operator.events).toContain(`ADDED ${namespace}`);
    });
    await operator.close();
  });

  it('holds a deleted object until the finalizer has run', async () => {
    const namespace = await aNamespace();
    const operator = await start([namespace]);
    const boost = await createBoost(namespace);
    await eventually(async () => {
      expect(await client.get(boost)).toMatchObject({ metadata: { finalizers: [FINALIZER] } });
    });
    await client.delete(boost);
    await eventually(async () => {
      expect(await failureOf(client.get(boost))).toMatchObject({ kind: 'NotFound' });
    });
    expect(operator.released).toContain('jvm');
    await operator.close();
  });

  it('writes the status whole or in part, and throws what fails', async () => {
    const namespace = await aNamespace();
    const operator = await start([namespace]);
    const boost = await createBoost(namespace);
    const event = await eventually(() => operator.latest);
    await operator.setStatus(event, { activeContainerBoosts: 1, totalContainerBoosts: 2 });
    await operator.patchStatus(event, { totalContainerBoosts: 3 });
    expect(await client.get(boost)).toMatchObject({
      status: { activeContainerBoosts: 1, totalContainerBoosts: 3 },
    });
    await operator.setStatus(event, { totalContainerBoosts: 4 });
    expect((await client.get(boost)).status).toEqual({ totalContainerBoosts: 4 });

    expect(await failureOf(operator.setFinalizers(event, []))).toMatchObject({ kind: 'Conflict' });
    await operator.close();
    const nobody = { ...event, meta: { ...event.meta, name: 'nobody' } };
    expect(await failureOf(operator.patchStatus(nobody, {}))).toMatchObject({ kind: 'NotFound' });
  });

  it('leaves the definition to the chart and knows its server', async () => {
    const operator = await start([]);
    await expect(operator.register('crd.yaml')).rejects.toThrow('crd.yaml is not registered');
    const { clusters } = await clusterOf(controlPlane.kubeconfigPath);
    expect(operator.uriOfPods()).toBe(`${clusters[0].cluster.server}/api/v1/namespaces/shop/pods`);
    await operator.close();
  });
});
