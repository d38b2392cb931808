/** From a release of google/kube-startup-cpu-boost to ours, as docs/migration.md says, and in the wrong order. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, readMetadata } from '../../src/boost-engine';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  STARTUP_CPU_BOOSTS,
} from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { customResourceDefinition } from '../../src/resources';
import { aBoost, aPod } from '../support/builders';
import { CHART } from '../support/chart';
import { eventually } from '../support/eventually';
import { followGuide } from '../support/guide';
import { done } from '../support/helm';
import { BOOSTED, Installation, ORIGINAL } from '../support/installation';
import { listAt } from '../support/objectAt';
import { UPSTREAM, writeUpstreamChart } from '../support/upstream';
import { UpstreamManager } from '../support/upstreamManager';

/** Helm waits for the real time that processes, elections and hooks take. */
const LONG_TEST_MS = 300_000;

const OURS = customResourceDefinition();
const DEFINITION = { ...CUSTOM_RESOURCE_DEFINITIONS, name: OURS.metadata.name };

let installation: Installation;
let folder: string;
let upstream: UpstreamManager;
let namespace: string;

beforeAll(async () => {
  installation = await Installation.start({ crds: false });
  folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-migration-'));
}, LONG_TEST_MS);

afterAll(async () => {
  await installation.stop();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  const chart = await writeUpstreamChart(folder);
  const { release } = UPSTREAM;
  await done(
    installation.helm.run(
      'install',
      release,
      chart,
      '-n',
      UPSTREAM.namespace,
      '--create-namespace',
    ),
  );
  upstream = await UpstreamManager.start(installation.world.controlPlane);
  namespace = await installation.world.namespace();
  await eventually(() => installation.world.createBoost(aBoost({ namespace, name: 'boost' })));
}, LONG_TEST_MS);

afterEach(async () => {
  await installation.uninstall('--no-hooks', '--ignore-not-found');
  const args = ['-n', UPSTREAM.namespace, '--ignore-not-found'];
  await installation.helm.run('uninstall', UPSTREAM.release, ...args);
  await upstream.stop();
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

function followTheGuide(step: string): Promise<string> {
  return followGuide({
    guide: 'docs/migration.md',
    step,
    folder,
    kubeconfigPath: installation.world.controlPlane.kubeconfigPath,
    env: { RELEASE: UPSTREAM.release, NAMESPACE: UPSTREAM.namespace },
  });
}

async function leaveUpstream(): Promise<void> {
  for (const step of ['backup', 'forget', 'stop']) await followTheGuide(step);
}

/** A CRD that has just come is initialized at first. */
async function boostUids(): Promise<readonly unknown[]> {
  const { client } = installation.world;
  const { items } = await eventually(() => client.list(STARTUP_CPU_BOOSTS, { namespace }));
  return items.map((item) => readMetadata(item).uid);
}

describe('from upstream to this chart', () => {
  it(
    'in the order of the guide, boosts stay, pods in flight get their CPU back, and none misses its boost',
    async () => {
      const { world } = installation;
      const boosts = await boostUids();
      const inFlight = await installation.createPodWith(BOOSTED, { namespace, name: 'in-flight' });
      await world.run(inFlight);

      await leaveUpstream();
      expect(await boostUids()).toEqual(boosts);
      const between = await world.createPod(aPod({ namespace, name: 'between' }));
      await world.run(between);
      expect(await world.cpuOf(between)).toEqual({ app: ORIGINAL });

      await done(installation.install());
      expect(await world.client.get(DEFINITION)).toMatchObject({ spec: OURS.spec });
      expect(await boostUids()).toEqual(boosts);
      await eventually(async () => {
        expect(await world.cpuOf(between)).toEqual({ app: BOOSTED });
      });
      await installation.untilNewPodsHave(BOOSTED, namespace);
      for (const pod of [inFlight, between]) {
        await world.kubelet.ready(pod);
        await world.untilReverted(pod, { app: ORIGINAL });
      }
    },
    LONG_TEST_MS,
  );

  it(
    'nothing of upstream is left after the guide but the namespace, the CRD and the boosts',
    async () => {
      await leaveUpstream();
      const left = await followTheGuide('look');
      expect(left.trim()).toBe('');
      expect(await boostUids()).toHaveLength(1);
    },
    LONG_TEST_MS,
  );

  it(
    'is refused while the webhook of upstream is there, says what to do, and leaves upstream at work',
    async () => {
      const boosts = await boostUids();
      const { code, stderr } = await installation.install();
      expect(code).toBe(1);
      expect(stderr).toContain(`MutatingWebhookConfiguration ${UPSTREAM.mutating}`);
      expect(stderr).toContain('docs/migration.md');
      const { items } = await installation.world.client.list(MUTATING_WEBHOOK_CONFIGURATIONS, {});
      expect(items.map((item) => readMetadata(item).name)).toEqual([UPSTREAM.mutating]);
      expect(await boostUids()).toEqual(boosts);
      await installation.untilNewPodsHave(BOOSTED, namespace);
    },
    LONG_TEST_MS,
  );

  it(
    'after an uninstall of upstream alone, which takes the boosts with it, the backup brings them back',
    async () => {
      const { world } = installation;
      await followTheGuide('backup');
      const args = ['-n', UPSTREAM.namespace];
      await done(installation.helm.run('uninstall', UPSTREAM.release, ...args));
      await done(installation.install());
      await eventually(() => followTheGuide('restore'));
      expect(await boostUids()).toHaveLength(1);
      await installation.untilNewPodsHave(BOOSTED, namespace);
      const pod = await world.createPod(aPod({ namespace, name: 'new' }));
      expect((await world.read(pod)).labels?.get(BOOST_KEY)).toBe('boost');
    },
    LONG_TEST_MS,
  );

  it(
    'is refused as an upgrade of the release of upstream, which would delete the CRD with all boosts',
    async () => {
      const boosts = await boostUids();
      const { release, namespace: place } = UPSTREAM;
      const { code, stderr } = await installation.helm.run('upgrade', release, CHART, '-n', place);
      expect([code, stderr]).toEqual([1, expect.stringContaining('docs/migration.md')]);
      expect(await boostUids()).toEqual(boosts);
      await installation.untilNewPodsHave(BOOSTED, namespace);
    },
    LONG_TEST_MS,
  );

  it(
    'tells on each boost of a webhook of upstream that comes back, and upgrades only without it',
    async () => {
      const { client } = installation.world;
      const theirs = { ...MUTATING_WEBHOOK_CONFIGURATIONS, name: UPSTREAM.mutating };
      const { apiVersion, kind, webhooks } = await client.get(theirs);
      await leaveUpstream();
      await done(installation.install());
      const metadata = { name: theirs.name };
      await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
        apiVersion,
        kind,
        metadata,
        webhooks,
      });
      await untilConflict({ status: 'True', message: expect.stringContaining(theirs.name) });
      const { code, stderr } = await installation.upgrade();
      expect([code, stderr]).toEqual([1, expect.stringContaining(theirs.name)]);

      await client.delete(theirs);
      await untilConflict({ status: 'False' });
      await done(installation.upgrade());
    },
    LONG_TEST_MS,
  );
});

async function untilConflict(expected: JsonObject): Promise<void> {
  await eventually(async () => {
    const status = await installation.world.statusOf(aBoost({ namespace, name: 'boost' }));
    const conditions = listAt(status, 'conditions');
    const conflict = conditions.find(({ type }) => type === 'ConflictingWebhook');
    expect(conflict).toMatchObject(expected);
  });
}
