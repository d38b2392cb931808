/** apply-crd: whatever definition it finds, boosts are kept, and what would be lost is told. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { fieldsOf, itemsOf, readMetadata } from '../../src/boost-engine';
import { ApiError, CUSTOM_RESOURCE_DEFINITIONS, STARTUP_CPU_BOOSTS } from '../../src/kube';
import type { JsonObject, ListPage, ObjectRef } from '../../src/kube';
import { customResourceDefinition } from '../../src/resources';
import { aBoost } from '../support/builders';
import { startCommand } from '../support/command';
import type { CommandEnd, RunningCommand } from '../support/command';
import { startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { objectAt, textsAt } from '../support/objectAt';
import { ServiceAccount } from '../support/serviceAccount';
import { upstreamDefinition } from '../support/upstream';

const OURS = customResourceDefinition();
const DEFINITION: ObjectRef = { ...CUSTOM_RESOURCE_DEFINITIONS, name: OURS.metadata.name };
const NAME = `CustomResourceDefinition ${OURS.metadata.name}`;
const BOOSTS = { ...STARTUP_CPU_BOOSTS, namespace: 'default' };

let controlPlane: ControlPlane;

beforeAll(async () => {
  controlPlane = await startControlPlane();
});

afterAll(async () => {
  await controlPlane.stop();
});

afterEach(async () => {
  await deleteDefinition(DEFINITION);
});

function start(args: readonly string[], kubeconfigPath: string): RunningCommand {
  return startCommand(['apply-crd', ...args], { KUBECONFIG: kubeconfigPath });
}

async function run(...args: readonly string[]): Promise<CommandEnd> {
  return start(args, controlPlane.kubeconfigPath).ended;
}

async function deleteDefinition(ref: ObjectRef): Promise<void> {
  await eventually(async () => {
    const failure = await controlPlane.client.delete(ref).catch((error: unknown) => error);
    expect(failure).toMatchObject({ failure: { kind: 'NotFound' } });
  });
}

function stored(): Promise<JsonObject> {
  return controlPlane.client.get(DEFINITION);
}

/** As this version has it, whatever else the API server or others have added. */
async function expectOurs(): Promise<void> {
  expect(await stored()).toMatchObject({ spec: OURS.spec });
}

async function define(definition: JsonObject): Promise<void> {
  await controlPlane.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition);
  await listBoosts();
}

/** After a change of the definition the API server fills its cache anew, and refuses lists meanwhile. */
function listBoosts(): Promise<ListPage> {
  return eventually(() => controlPlane.client.list(BOOSTS));
}

/** Of a definition that is not in force everywhere yet, the answer is NotFound. */
async function createBoost(boost = aBoost({ namespace: 'default' })): Promise<JsonObject> {
  return eventually(() => controlPlane.client.create(BOOSTS, boost));
}

/** Ours, and a field that only a later version has. */
function laterDefinition(): JsonObject {
  const [version] = OURS.spec.versions;
  const schema = objectAt(objectAt({ ...version }, 'schema'), 'openAPIV3Schema');
  const properties = objectAt(schema, 'properties');
  const spec = objectAt(properties, 'spec');
  const later = {
    ...schema,
    properties: {
      ...properties,
      spec: {
        ...spec,
        properties: { ...objectAt(spec, 'properties'), future: { type: 'string' } },
      },
    },
  };
  const versions = [{ ...version, schema: { openAPIV3Schema: later } }];
  return { ...OURS, spec: { ...OURS.spec, versions } };
}

describe('apply-crd', () => {
  it('creates the definition, and waits until boosts can be stored', async () => {
    const { code, stdout } = await run();
    expect([code, stdout]).toEqual([0, `${NAME}: created, and served\n`]);
    await expectOurs();
    await controlPlane.client.create(BOOSTS, aBoost({ namespace: 'default' }));
  });

  it('changes nothing where it is as it should be', async () => {
    await run();
    const before = await stored();
    const { code, stdout } = await run();
    expect([code, stdout]).toEqual([0, `${NAME}: is as this version has it, and served\n`]);
    expect(readMetadata(await stored()).resourceVersion).toBe(readMetadata(before).resourceVersion);
  });

  it('takes over the definition of upstream, whose boosts, labels and annotations stay', async () => {
    const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
    await define(
      upstreamDefinition({ labels, annotations: { 'meta.helm.sh/release-name': 'up' } }),
    );
    const boost = await createBoost();

    const { code, stdout } = await run();

    expect([code, stdout]).toEqual([
      0,
      `${NAME}: updated to this version, and served; stored boosts stay\n`,
    ]);
    await expectOurs();
    expect(await stored()).toMatchObject({
      metadata: { labels, annotations: { 'meta.helm.sh/release-name': 'up' } },
    });
    const { items } = await listBoosts();
    expect(items.map((item) => readMetadata(item).uid)).toEqual([readMetadata(boost).uid]);
    expect(items[0]).toMatchObject({ spec: boost.spec, selector: boost.selector });
  });

  it('takes it over again where somebody else has applied theirs since', async () => {
    await run();
    await controlPlane.client.patch(DEFINITION, {
      type: 'apply',
      body: upstreamDefinition(),
      fieldManager: 'argocd',
    });
    expect((await run()).code).toBe(0);
    await expectOurs();
  });

  it('leaves a definition of which a boost uses what this version does not know', async () => {
    await define(laterDefinition());
    const boost = aBoost({ namespace: 'default' });
    const spec = { ...objectAt(boost, 'spec'), future: 'yes' };
    await createBoost({ ...boost, spec });
    const before = await stored();

    const { code, stdout, stderr } = await run();

    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`${NAME}: left as it is\n`);
    expect(stderr).toContain(`  default/${readMetadata(boost).name ?? ''}: spec.future\n`);
    expect(stderr).toContain('--drop-unknown-fields');
    expect(readMetadata(await stored()).resourceVersion).toBe(readMetadata(before).resourceVersion);

    expect((await run('--drop-unknown-fields')).code).toBe(0);
    await expectOurs();
  });

  it('goes back to this version where no boost uses what a later one knows', async () => {
    await define(laterDefinition());
    await createBoost();
    expect((await run()).code).toBe(0);
    await expectOurs();
  });

  it('leaves a definition whose boosts may be stored in a version that it cannot read', async () => {
    const { spec } = OURS;
    const later = { ...spec.versions[0], name: 'v1', storage: true };
    const versions = [{ ...spec.versions[0], storage: false }, later];
    await define({ ...OURS, spec: { ...spec, versions } });
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([1, expect.stringContaining('Boosts may be stored in v1,')]);
    expect(itemsOf(fieldsOf((await stored()).spec).get('versions'))).toHaveLength(2);
  });

  it('waits until a definition that is being deleted is gone', async () => {
    const finalizer = 'example.com/slow';
    await define(upstreamDefinition({ finalizers: [finalizer] }));
    await controlPlane.client.delete(DEFINITION);
    const command = start([], controlPlane.kubeconfigPath);
    await eventually(() => {
      expect(command.stderr()).toContain('is being deleted, and its boosts with it');
    });
    await eventually(async () => {
      const { metadata } = await stored();
      const finalizers = textsAt(objectAt({ metadata }, 'metadata'), 'finalizers');
      await controlPlane.client.patch(DEFINITION, {
        type: 'merge',
        body: { metadata: { finalizers: finalizers.filter((name) => name !== finalizer) } },
      });
    });
    expect((await command.ended).stdout).toBe(`${NAME}: created, and served\n`);
    await expectOurs();
  });

  it('tells which definition has taken its names', async () => {
    const plural = 'otherboosts';
    const name = `${plural}.${OURS.spec.group}`;
    const other = { ...DEFINITION, name };
    const names = { plural, singular: 'otherboost', kind: 'StartupCPUBoost', listKind: 'Others' };
    const definition = upstreamDefinition({ name });
    await controlPlane.client.create(CUSTOM_RESOURCE_DEFINITIONS, {
      ...definition,
      spec: { ...objectAt(definition, 'spec'), names },
    });
    await eventually(async () => {
      expect(objectAt(await controlPlane.client.get(other), 'status').acceptedNames).toEqual(names);
    });
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('"StartupCPUBoost" is already in use'),
    ]);
    await deleteDefinition(other);
  });

  it('does with rights on this one definition by its name, and is told of rights it lacks', async () => {
    const namespace = 'least-rights';
    await controlPlane.client.create(
      { group: '', version: 'v1', plural: 'namespaces' },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    );
    const pods = { apiGroups: [''], resources: ['pods'], verbs: ['list'] };
    const rights = [
      {
        apiGroups: [DEFINITION.group],
        resources: [DEFINITION.plural],
        resourceNames: [DEFINITION.name],
        verbs: ['get', 'create', 'patch'],
      },
      { apiGroups: [BOOSTS.group], resources: [BOOSTS.plural], verbs: ['list'] },
    ];
    const account = await ServiceAccount.create(controlPlane, namespace, [pods, ...rights]);
    const kubeconfigPath = await account.kubeconfig();
    expect((await start([], kubeconfigPath).ended).stdout).toContain('created');
    expect((await start([], kubeconfigPath).ended).stdout).toContain('is as this version has it');

    await account.allow([pods]);
    const { code, stderr } = await start(['--timeout', '3s'], kubeconfigPath).ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot get resource')]);
  });

  it('gives up in time where there is no API server', async () => {
    const client = controlPlane.client;
    await controlPlane.stopApiServer();
    const { code, stderr } = await run('--timeout', '1s');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${NAME}: `)]);
    await controlPlane.startApiServer();
    await eventually(async () => {
      await expect(client.get(DEFINITION)).rejects.toBeInstanceOf(ApiError);
    });
  });
});
