/** The two processes from the real bundle on a real API server: the whole loop, kills, ends and probes. */
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY } from '../../src/boost-engine';
import { PODS, STARTUP_CPU_BOOSTS, loadKubeConfig } from '../../src/kube';
import { aBoost, aPod, percentageIncrease, untilSeconds } from '../support/builders';
import { eventually } from '../support/eventually';
import type { PodName } from '../support/kubelet';
import { BoostProcess, startProcess } from '../support/processes';
import type { ProcessOptions, Role } from '../support/processes';
import { TcpProxy } from '../support/tcpProxy';
import { installWebhooks } from '../support/webhooks';
import { World } from '../support/world';

const ROLES: readonly Role[] = ['admission', 'controller'];

/** Of aContainer. */
const ORIGINAL = { app: { request: '250m', limit: '1' } };
const BOOSTED = { app: { request: '500m', limit: '2' } };

let world: World;
/** All that a test has started; those that ended by themselves are harmless to stop. */
let started: BoostProcess[] = [];

beforeAll(async () => {
  world = await World.start();
});

afterAll(async () => {
  await world.stop();
});

afterEach(async () => {
  // A controller that is asked to stop leaves the lead to the next one; admission may be frozen.
  await Promise.all(
    started.map((each) => each.stop(each.role === 'controller' ? 'SIGTERM' : 'SIGKILL')),
  );
  started = [];
});

async function start(role: Role): Promise<BoostProcess> {
  const child = await startProcess(role, { kubeconfigPath: world.controlPlane.kubeconfigPath });
  started.push(child);
  return child;
}

/** Without waiting for it to be ready. */
async function spawn(role: Role, options: Partial<ProcessOptions> = {}): Promise<BoostProcess> {
  const { kubeconfigPath } = world.controlPlane;
  const child = await BoostProcess.spawn(role, { kubeconfigPath, ...options });
  started.push(child);
  return child;
}

describe('admission and controller', () => {
  let admission: BoostProcess;
  let controller: BoostProcess;
  let namespace: string;

  beforeEach(async () => {
    [admission, controller] = await Promise.all([start('admission'), start('controller')]);
    await serveWebhooks();
    namespace = await world.namespace();
    await eventually(() => world.createBoost(aBoost({ namespace })));
    await untilBoosting();
  });

  async function serveWebhooks(): Promise<void> {
    const target = { url: admission.webhookUrl, caBundle: admission.caBundle };
    await installWebhooks(world.client, target);
  }

  /** The API server needs a moment for a new webhook, and admission one for a new boost. */
  async function untilBoosting(): Promise<void> {
    await eventually(async () => {
      const pods = { ...PODS, namespace };
      const answer = await world.client.create(pods, aPod({ namespace }), { dryRun: true });
      expect(answer).toMatchObject({ metadata: { labels: { [BOOST_KEY]: 'boost' } } });
    });
  }

  async function createPod(name: string): Promise<PodName> {
    return world.createPod(aPod({ namespace, name }));
  }

  async function createBoosted(name: string): Promise<PodName> {
    const pod = await createPod(name);
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);
    await world.run(pod);
    return pod;
  }

  it('boost a pod that is created, and give back its exact CPU when it is Ready', async () => {
    const pod = await createBoosted('whole-loop');

    await world.kubelet.ready(pod);

    await world.untilReverted(pod, ORIGINAL);
  });

  it('lose nothing when the controller is killed: the next one reverts what it finds', async () => {
    const ready = await createBoosted('ready-meanwhile');
    const later = await createBoosted('ready-later');

    await controller.stop('SIGKILL');
    await world.kubelet.ready(ready);
    expect(await world.cpuOf(ready)).toEqual(BOOSTED);
    controller = await start('controller');

    await world.untilReverted(ready, ORIGINAL);
    expect(await world.cpuOf(later)).toEqual(BOOSTED);
    await world.kubelet.ready(later);
    await world.untilReverted(later, ORIGINAL);
  });

  it('give the CPU back also when the duration ended while no controller was there', async () => {
    await world.createBoost(
      aBoost({
        namespace,
        name: 'short',
        selector: { matchLabels: { job: 'import' } },
        containerPolicies: [percentageIncrease('app', 100)],
        durationPolicy: untilSeconds(1),
      }),
    );
    const manifest = aPod({ namespace, name: 'import', labels: { job: 'import' } });
    const pods = { ...PODS, namespace };
    await eventually(async () => {
      const answer = await world.client.create(pods, manifest, { dryRun: true });
      expect(answer).toMatchObject({ metadata: { labels: { [BOOST_KEY]: 'short' } } });
    });
    await controller.stop('SIGKILL');
    const pod = await world.createPod(manifest);
    // Scheduled an hour ago: the duration is over, whatever the time.
    await world.kubelet.bind(pod, { at: new Date(Date.now() - 3_600_000) });
    await world.kubelet.running(pod);
    expect(await world.cpuOf(pod)).toEqual(BOOSTED);

    controller = await start('controller');

    await world.untilReverted(pod, ORIGINAL);
  });

  it('let pods be created without a boost while admission is dead, and boost again after', async () => {
    await admission.stop('SIGKILL');
    const unboosted = await createPod('while-dead');
    expect(await world.cpuOf(unboosted)).toEqual(ORIGINAL);

    admission = await start('admission');
    await serveWebhooks();
    await untilBoosting();

    const boosted = await createBoosted('after');
    await world.kubelet.ready(boosted);
    await world.untilReverted(boosted, ORIGINAL);
    expect(await world.cpuOf(unboosted)).toEqual(ORIGINAL);
  });

  it('let pods be created without a boost while admission does not answer', async () => {
    process.kill(admission.pid, 'SIGSTOP');
    const unboosted = await createPod('while-frozen');
    expect(await world.cpuOf(unboosted)).toEqual(ORIGINAL);

    process.kill(admission.pid, 'SIGCONT');
    await untilBoosting();

    await createBoosted('after');
  });

  it('give the CPU back when the boost is deleted', async () => {
    const pod = await createBoosted('boost-deleted');

    await world.client.delete({ ...STARTUP_CPU_BOOSTS, namespace, name: 'boost' });

    await world.untilReverted(pod, ORIGINAL);
  });

  it('count what they did in their metrics', async () => {
    const pod = await createBoosted('counted');
    await world.kubelet.ready(pod);
    await world.untilReverted(pod, ORIGINAL);

    expect(await textOf(admission.metricsUrl)).toMatch(
      /^startup_cpu_boost_admission_requests_total\{path="\/mutate-v1-pod",result="Boost"\} [1-9]/m,
    );
    expect(await textOf(controller.metricsUrl)).toMatch(
      /^startup_cpu_boost_reverts_total\{reason="ConditionMet"\} 1$/m,
    );
  });
});

describe.each(ROLES)('the %s process', (role) => {
  it('answers probes and metrics', async () => {
    const { healthUrl, metricsUrl } = await start(role);

    expect(await textOf(`${healthUrl}/livez`)).toBe('ok');
    expect(await textOf(`${healthUrl}/readyz`)).toBe('ok');
    const verbose = await textOf(`${healthUrl}/readyz?verbose`);
    expect(verbose).toMatch(/^(\[\+\]\S+ ok\n)+ok\n$/);
    expect(await textOf(metricsUrl)).toMatch(/^process_cpu_seconds_total /m);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with code 0 on %s', async (signal) => {
    const child = await start(role);

    process.kill(child.pid, signal);

    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.logs().at(-1)).toMatchObject({ level: 'info', message: 'stopped' });
  });

  it('ends with code 2 on bad settings, one line for each with what is allowed', async () => {
    const env = { HEALTH_PROBE_BIND_ADDR: 'nowhere', ZAP_LOG_LEVEL: 'loud' };
    const child = await spawn(role, { env });

    expect(await child.exited).toEqual({ code: 2, signal: null });
    expect([...complaints(child)].sort()).toEqual([
      expect.stringMatching(/^HEALTH_PROBE_BIND_ADDR="nowhere": must be \[HOST\]:PORT/),
      expect.stringMatching(/^ZAP_LOG_LEVEL="loud": must be one of debug, info/),
    ]);
  });

  it('ends with code 2 on a kubeconfig that is not there', async () => {
    const child = await spawn(role, { kubeconfigPath: '/nowhere/kubeconfig' });

    expect(await child.exited).toEqual({ code: 2, signal: null });
    expect(complaints(child)).toEqual([
      expect.stringMatching(/^KUBECONFIG="\/nowhere\/kubeconfig": /),
    ]);
  });

  it.each(['HEALTH_PROBE_BIND_ADDR', 'METRICS_PROBE_BIND_ADDR'])(
    'ends with code 1 when the port of %s is taken',
    async (variable) => {
      await withTakenPort(async (port) => {
        const child = await spawn(role, { env: { [variable]: `127.0.0.1:${port}` } });

        expect(await child.exited).toEqual({ code: 1, signal: null });
        expect(complaints(child)).toEqual([
          `${role} cannot start: ${variable}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
        ]);
      });
    },
  );

  it('starts while the API server is away, and is ready when it is back', async () => {
    const proxy = await TcpProxy.start(apiPort());
    try {
      proxy.cut();
      const child = await spawn(role, { kubeconfigPath: await kubeconfigThrough(proxy) });
      await eventually(async () => {
        expect(await textOf(`${child.healthUrl}/livez`)).toBe('ok');
      });
      const response = await fetch(`${child.healthUrl}/readyz`);
      expect(response.status).toBe(500);
      expect(await response.text()).toMatch(/^\[-\]\S+ failed: /m);

      proxy.mend();

      await child.ready();
    } finally {
      await proxy.stop();
    }
  });
});

describe('the admission process', () => {
  it('ends with code 1 when the port of its webhooks is taken', async () => {
    await withTakenPort(async (port) => {
      const child = await spawn('admission', { env: { WEBHOOK_PORT: String(port) } });

      expect(await child.exited).toEqual({ code: 1, signal: null });
      expect(complaints(child)).toEqual([
        `admission cannot start: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
      ]);
    });
  });
});

/** What was written for a person: every line that is none of the log. */
function complaints(child: BoostProcess): readonly string[] {
  return child
    .output()
    .split('\n')
    .filter((line) => !line.startsWith('{'));
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return response.text();
}

async function withTakenPort(test: (port: number) => Promise<void>): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await test(portOf(server));
  } finally {
    server.close();
  }
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function apiServer(): URL {
  const { kubeconfigPath } = world.controlPlane;
  const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  return new URL(kubeConfig.getCurrentCluster()?.server ?? '');
}

function apiPort(): number {
  return Number(apiServer().port);
}

/** A kubeconfig as the one of the control plane, that goes through the proxy. */
async function kubeconfigThrough({ port }: TcpProxy): Promise<string> {
  const { kubeconfigPath, dir } = world.controlPlane;
  const text = await readFile(kubeconfigPath, 'utf8');
  const path = join(dir, `kubeconfig-${port}`);
  await writeFile(path, text.replaceAll(apiServer().host, `127.0.0.1:${port}`));
  return path;
}
