/** Several replicas behind one Service: all of them Ready, and no pod misses its boost for a replica's end. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import { PODS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { LoadBalancer } from '../support/loadBalancer';
import { startProcess } from '../support/processes';
import type { BoostProcess, Role } from '../support/processes';
import { writeServingCertificate } from '../support/servingCertificate';
import type { ServingFolder } from '../support/servingCertificate';
import { installWebhooks } from '../support/webhooks';
import { World } from '../support/world';

/** Of aContainer. */
const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

/** As many reviews at once as a small Deployment makes when it scales up. */
const CREATORS = 4;

let world: World;
let certificate: ServingFolder;
let balancer: LoadBalancer;
let namespace: string;
/** All that a test has started; those that ended are harmless to stop. */
let started: BoostProcess[] = [];

beforeAll(async () => {
  world = await World.start();
  certificate = await writeServingCertificate(join(world.controlPlane.dir, 'serving'));
  balancer = await LoadBalancer.start();
});

afterAll(async () => {
  await balancer.stop();
  await world.stop();
});

beforeEach(async () => {
  namespace = await world.namespace();
  // While no replica answers, a StartupCPUBoost cannot be validated, so it comes before the webhooks.
  await world.client.delete(VALIDATION).catch(() => undefined);
  await eventually(() => world.createBoost(aBoost({ namespace })));
  const { url } = balancer;
  await installWebhooks(world.client, { url, caBundle: certificate.caBundle });
});

afterEach(async () => {
  await Promise.all(started.map((each) => each.stop('SIGKILL')));
  for (const each of started) balancer.remove(each);
  started = [];
});

const VALIDATION = { ...VALIDATING_WEBHOOK_CONFIGURATIONS, name: 'startup-cpu-boost' };

/** Resolves when it is Ready; the Service has admission then. */
async function start(role: Role): Promise<BoostProcess> {
  const replica = await startProcess(role, {
    kubeconfigPath: world.controlPlane.kubeconfigPath,
    env: {
      CERT_DIR: certificate.directory,
      POD_NAMESPACE: namespace,
      // Longer than the Service takes to hear of it.
      WEBHOOK_DRAIN_SECONDS: '3',
    },
  });
  started.push(replica);
  if (role === 'admission') {
    balancer.add(replica);
    await eventually(() => {
      expect(balancer.ready()).toContain(replica);
    });
  }
  return replica;
}

async function isReady({ healthUrl }: BoostProcess): Promise<boolean> {
  const response = await fetch(`${healthUrl}/readyz`, { signal: AbortSignal.timeout(10_000) });
  return response.ok;
}

/** The API server needs a moment for changed webhooks. */
async function untilBoosting(): Promise<void> {
  await eventually(async () => {
    const pods = { ...PODS, namespace };
    const answer = await world.client.create(pods, aPod({ namespace }), { dryRun: true });
    expect(answer).toMatchObject({ metadata: { labels: { [BOOST_KEY]: 'boost' } } });
  });
}

interface Created extends PodName {
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly isBoosted: boolean;
}

/** Creates pods one after the other in several places at once, until it is stopped. */
class PodCreators {
  readonly created: Created[] = [];
  readonly #loops: Promise<void>[];
  #isStopped = false;
  #count = 0;

  constructor() {
    this.#loops = Array.from({ length: CREATORS }, () => this.#create());
  }

  async untilMore(count: number): Promise<void> {
    const goal = this.created.length + count;
    await eventually(() => {
      expect(this.created.length).toBeGreaterThanOrEqual(goal);
    });
  }

  async stop(): Promise<readonly Created[]> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    return this.created;
  }

  async #create(): Promise<void> {
    while (!this.#isStopped) {
      this.#count += 1;
      const askedAt = Date.now();
      const pod = await world.createPod(aPod({ namespace, name: `pod-${this.#count}` }));
      const answeredAt = Date.now();
      const { labels } = await world.read(pod);
      const isBoosted = labels?.has(BOOST_KEY) ?? false;
      this.created.push({ ...pod, askedAt, answeredAt, isBoosted });
    }
  }
}

function missed(created: readonly Created[]): readonly Created[] {
  return created.filter(({ isBoosted }) => !isBoosted);
}

it('every replica of both is Ready, whether it leads or not', async () => {
  const replicas = await Promise.all([
    start('admission'),
    start('admission'),
    start('controller'),
    start('controller'),
  ]);

  await eventually(async () => {
    const texts = await Promise.all(
      replicas.slice(2).map(async ({ metricsUrl }) => (await fetch(metricsUrl)).text()),
    );
    const leaders = texts.filter((text) => text.includes('\nstartup_cpu_boost_leader 1'));
    expect(leaders).toHaveLength(1);
  });
  expect(await Promise.all(replicas.map(isReady))).toEqual([true, true, true, true]);
});

it('the first pod that a fresh replica judges is boosted', async () => {
  let last = await start('admission');
  await untilBoosting();

  for (let round = 1; round <= 5; round += 1) {
    await last.stop('SIGKILL');
    balancer.remove(last);
    last = await start('admission');
    const pod = await world.createPod(aPod({ namespace, name: `first-of-${round}` }));

    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
  }
});

it('an API server that is away makes no replica unready', async () => {
  const replicas = await Promise.all([start('admission'), start('admission'), start('controller')]);
  await world.controlPlane.stopApiServer();
  try {
    // For longer than a Lease lasts.
    for (const end = Date.now() + 8_000; Date.now() < end;) {
      expect(await Promise.all(replicas.map(isReady))).toEqual([true, true, true]);
      await delay(250);
    }
  } finally {
    await world.controlPlane.startApiServer();
  }
});

describe('while pods are created all the time, of two replicas', () => {
  let creators: PodCreators;
  /** The API server has connections to it. */
  let busy: BoostProcess;

  beforeEach(async () => {
    const replicas = await Promise.all([start('admission'), start('admission')]);
    await untilBoosting();
    creators = new PodCreators();
    await creators.untilMore(50);
    const connected = replicas.filter((each) => balancer.connectionsTo(each) > 0);
    expect(connected).not.toEqual([]);
    busy = connected[0] ?? replicas[0];
  });

  afterEach(async () => {
    await creators.stop();
  });

  it('one that is asked to stop loses no boost', async () => {
    const exit = await busy.stop('SIGTERM');
    await creators.untilMore(50);
    const created = await creators.stop();

    expect(exit).toEqual({ code: 0, signal: null });
    expect(missed(created)).toEqual([]);
  });

  it('one that is killed loses the reviews at most that came before the Service knew', async () => {
    const killedAt = Date.now();
    await busy.stop('SIGKILL');
    await eventually(() => {
      expect(balancer.ready()).not.toContain(busy);
    });
    const noticedAt = Date.now();
    await creators.untilMore(50);
    const created = await creators.stop();

    const meanwhile = created.filter(
      ({ askedAt, answeredAt }) => answeredAt >= killedAt && askedAt <= noticedAt,
    );
    for (const pod of missed(created)) expect(meanwhile).toContain(pod);
  });
});

it('a rolling restart of all replicas of both loses no boost, and each pod gets its CPU back', async () => {
  const roles = ['admission', 'controller', 'admission', 'controller'] as const;
  let replicas = await Promise.all(roles.map((role) => start(role)));
  await untilBoosting();
  const creators = new PodCreators();

  for (const old of replicas) {
    await creators.untilMore(20);
    replicas = [...replicas, await start(old.role)];
    expect(await old.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  }
  await creators.untilMore(20);
  const created = await creators.stop();

  expect(missed(created)).toEqual([]);
  const sample = created.filter((_, index) => index % 20 === 0);
  for (const pod of sample) {
    await world.run(pod);
    await world.kubelet.ready(pod);
  }
  for (const pod of sample) await world.untilReverted(pod, ORIGINAL);
});
