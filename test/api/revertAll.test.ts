/** revert-all: whatever goes on meanwhile, no pod stays boosted, and what cannot be reverted is told. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, ENDED_KEY, readPod } from '../../src/boost-engine';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { startCommand } from '../support/command';
import type { CommandEnd, RunningCommand } from '../support/command';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { listAt } from '../support/objectAt';
import { startProcess } from '../support/processes';
import type { BoostProcess } from '../support/processes';
import { POLICY_MESSAGE, refuseResizes } from '../support/resizePolicy';
import { installPodWebhook } from '../support/webhooks';
import { World } from '../support/world';

const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

let world: World;
let namespace: string;
let boost: JsonObject;

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  // No pod of this file ever gets ready: only revert-all ends a boost.
  boost = await world.createBoost(aBoost({ namespace }));
});

/** One test's pods must not be found by the next one's run. */
afterEach(async () => {
  const { items } = await world.client.list({ ...PODS }, { namespace });
  for (const pod of items) {
    const { name = '' } = readPod(pod);
    await world.client.delete({ ...PODS, namespace, name }, { gracePeriodSeconds: 0 });
  }
});

function start(...args: readonly string[]): RunningCommand {
  const { kubeconfigPath } = world.controlPlane;
  return startCommand(['revert-all', ...args], { KUBECONFIG: kubeconfigPath });
}

async function run(...args: readonly string[]): Promise<CommandEnd> {
  return start(...args).ended;
}

async function startingPod(name: string): Promise<PodName> {
  const pod = await world.createBoosted(aPod({ namespace, name }), boost);
  await world.run(pod);
  return pod;
}

async function expectReverted(...pods: readonly PodName[]): Promise<void> {
  for (const pod of pods) {
    expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
    const { labels, annotations } = await world.read(pod);
    expect([labels?.has(BOOST_KEY), annotations?.has(BOOST_KEY) ?? false]).toEqual([false, false]);
  }
}

describe('revert-all beside the running operator', () => {
  let replicas: BoostProcess[];

  beforeEach(async () => {
    const { kubeconfigPath } = world.controlPlane;
    const options = { kubeconfigPath, env: { POD_NAMESPACE: namespace } };
    const [admission, controller] = await Promise.all([
      startProcess('admission', options),
      startProcess('controller', options),
    ]);
    replicas = [admission, controller];
    await installPodWebhook(world.client, {
      url: admission.webhookUrl,
      caBundle: admission.caBundle,
      namespaces: [namespace],
    });
    await untilNewPodsHave(BOOSTED);
  });

  afterEach(async () => {
    await run('--undo');
    await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
  });

  async function untilNewPodsHave(cpu: JsonObject): Promise<void> {
    await eventually(async () => {
      const pod = await world.client.create({ ...PODS, namespace }, aPod({ namespace }), {
        dryRun: true,
      });
      const [container] = readPod(pod).containers;
      expect({ app: container?.cpu }).toEqual(cpu);
    });
  }

  async function activeCondition(): Promise<JsonObject | undefined> {
    const conditions = listAt(await world.statusOf(boost), 'conditions');
    return conditions.find(({ type }) => type === 'Active');
  }

  it('leaves nothing boosted in a storm of new pods, is told of on the boost, and can be undone', async () => {
    const before = await Promise.all(
      Array.from({ length: 20 }, (_, index) => world.createPod(podNamed(`before-${index}`))),
    );
    await Promise.all(before.map((pod) => world.run(pod)));
    const command = start('--timeout', '90s');
    const over = new AbortController();
    void command.ended.then(() => {
      over.abort();
    });
    let created = 0;
    while (!over.signal.aborted) {
      await world.createPod(podNamed(`storm-${created}`));
      created += 1;
      // Fifty a second at most, some of them boosted before the webhook is stopped.
      await delay(20);
    }
    const { code, stdout, stderr } = await command.ended;
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^\d+ boosted pods found, all have their own CPU again or are gone\n$/),
    ]);
    expect(stderr).toContain('stopped, new pods are not boosted; "revert-all --undo"');
    expect(Number(stdout.split(' ')[0])).toBeGreaterThan(before.length);
    const { items } = await world.client.list(PODS, { namespace });
    expect(items).toHaveLength(before.length + created);
    for (const { name = '', annotations, containers } of items.map(readPod)) {
      const [container] = containers;
      expect([name, container?.cpu, annotations?.has(BOOST_KEY) ?? false]).toEqual([
        name,
        ORIGINAL.app,
        false,
      ]);
    }
    await eventually(async () => {
      expect(await activeCondition()).toMatchObject({ status: 'False', reason: 'Stopped' });
    });

    const again = await run();
    expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^0 boosted pods/)]);

    const undone = await run('--undo');
    expect([undone.code, undone.stdout]).toEqual([0, expect.stringContaining('boosts new pods')]);
    await untilNewPodsHave(BOOSTED);
    await eventually(async () => {
      expect(await activeCondition()).toMatchObject({ status: 'True', reason: 'Ready' });
    });
    const nothing = await run('--undo');
    expect([nothing.code, nothing.stdout]).toEqual([0, expect.stringContaining('was not stopped')]);
  }, 180_000);

  it('leaves the webhook alone where it is told to', async () => {
    const pod = await world.createPod(podNamed('one'));
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    expect((await run('--keep-boosting')).code).toBe(0);
    await expectReverted(pod);
    await untilNewPodsHave(BOOSTED);
  });

  function podNamed(name: string): JsonObject {
    return aPod({ namespace, name });
  }
});

describe('revert-all without a controller', () => {
  it('finds a pod that has lost its label', async () => {
    const pod = await startingPod('unlabelled');
    await world.client.patch(
      { ...PODS, ...pod },
      { type: 'merge', body: { metadata: { labels: { [BOOST_KEY]: null } } } },
    );
    expect((await run('--keep-boosting')).code).toBe(0);
    await expectReverted(pod);
  });

  it('tells which pods a policy keeps from being reverted, and reverts the others', async () => {
    const refused = await startingPod('refused');
    const policy = await refuseResizes(world.client, namespace);
    const other = await world.namespace();
    const otherBoost = await world.createBoost(aBoost({ namespace: other }));
    const pod = await world.createBoosted(aPod({ namespace: other }), otherBoost);
    const { code, stdout } = await run('--keep-boosting');
    expect([code, stdout]).toEqual([1, expect.stringContaining('2 boosted pods found, 1 left')]);
    expect(stdout).toMatch(new RegExp(`  ${namespace}/refused: Refused: .*${POLICY_MESSAGE}`));
    await expectReverted(pod);
    expect(await world.cpuOf(refused)).toEqual(BOOSTED);
    await policy.remove();
    expect((await run('--keep-boosting')).code).toBe(0);
    await expectReverted(refused);
    expect((await world.read(refused)).annotations?.get(ENDED_KEY)).toBe('RevertAll');
  });

  it('tells which record cannot be read', async () => {
    const pod = await startingPod('damaged');
    await world.client.patch(
      { ...PODS, ...pod },
      { type: 'merge', body: { metadata: { annotations: { [BOOST_KEY]: 'junk\u001b[2K' } } } },
    );
    const { code, stdout } = await run('--keep-boosting');
    expect([code, stdout]).toEqual([1, expect.stringContaining('/damaged: RecordUnreadable: ')]);
  });

  it('waits for a kubelet until its time is over, and then says so', async () => {
    world.answerResize('silent', 'Ignore');
    const pod = await startingPod('silent');
    const { code, stdout } = await run('--keep-boosting', '--timeout', '3s');
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining(`${namespace}/silent: the kubelet has not confirmed the resize yet`),
    ]);
    expect(await world.cpuOf(pod)).toEqual(ORIGINAL);
    await world.kubelet.acceptResize(pod);
    expect((await run('--keep-boosting')).code).toBe(0);
    await expectReverted(pod);
  });

  it('ends in order on Ctrl-C', async () => {
    world.answerResize('interrupted', 'Ignore');
    await startingPod('interrupted');
    const command = start('--keep-boosting');
    await eventually(() => {
      expect(command.stderr()).toContain('1 left');
    });
    command.signal('SIGINT');
    const { code, stdout } = await command.ended;
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^ended before everything was done: 1 boosted pods found, 1 left\n/),
    ]);
  });

  it('goes on when the API server is back', async () => {
    const pods = await Promise.all(['one', 'two', 'three'].map(startingPod));
    await world.controlPlane.stopApiServer();
    const command = start('--keep-boosting');
    await eventually(() => {
      expect(command.stderr()).toContain('trying again');
    });
    await world.controlPlane.startApiServer();
    expect((await command.ended).code).toBe(0);
    await expectReverted(...pods);
  });

  it('does not call it done where a webhook under another name boosts on', async () => {
    const { kubeconfigPath } = world.controlPlane;
    const environment = { KUBECONFIG: kubeconfigPath, WEBHOOK_CONFIGURATION: 'another' };
    const pod = await startingPod('one');
    const { code, stderr } = await startCommand(['revert-all'], environment).ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/another: not found.* boosted on by startup-cpu-boost;/);
    await expectReverted(pod);
  });

  it('takes its kubeconfig from several files, as kubectl does', async () => {
    const users = join(await mkdtemp(join(tmpdir(), 'kubeconfig-')), 'users');
    await writeFile(users, JSON.stringify({ users: [] }));
    const KUBECONFIG = [users, world.controlPlane.kubeconfigPath].join(delimiter);
    const pod = await startingPod('one');
    expect((await startCommand(['revert-all', '--keep-boosting'], { KUBECONFIG }).ended).code).toBe(
      0,
    );
    await expectReverted(pod);
    await rm(dirname(users), { recursive: true });
  });

  it('says what it does not know', async () => {
    expect(await run('--now')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('usage: startup-cpu-boost revert-all'),
    });
  });
});
