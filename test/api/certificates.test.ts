/** Certificates in two Secrets of a real API server: made, rotated, healed, whoever dies meanwhile. */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, readPod } from '../../src/boost-engine';
import { issueAuthority, issueLeaf } from '../../src/certificates';
import type { IssuedCertificate } from '../../src/certificates';
import type { CertificateStore } from '../../src/certificates/certificateStore';
import { trustedOf } from '../../src/certificates/rotationPlan';
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  loadKubeConfig,
} from '../../src/kube';
import { aBoost, aPod } from '../support/builders';
import { aCertificate, writeCertificateFiles } from '../support/certificates';
import {
  CertificateStage,
  HOUR_MS,
  handshakeAllTheTime,
  startBalancer,
  stepsOf,
} from '../support/certificateStage';
import { startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { startProcess } from '../support/processes';
import type { BoostProcess } from '../support/processes';
import { ServiceAccount } from '../support/serviceAccount';
import { installWebhooks } from '../support/webhooks';

/** Of a test that sees certificates of seconds come and go. */
const LONG_TEST_MS = 300_000;

let controlPlane: ControlPlane;
let stage: CertificateStage;
let count = 0;

beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
});

afterAll(async () => {
  await controlPlane.stop();
});

beforeEach(async () => {
  count += 1;
  stage = await CertificateStage.create(controlPlane, `certificates-${count}`);
});

afterEach(async () => {
  await stage.stop();
});

/** Without a caBundle, for a server on this port. */
async function installConfigurations(port = 9): Promise<void> {
  const url = `https://127.0.0.1:${port}`;
  await installWebhooks(stage.client, { url, namespaces: [stage.names.namespace] });
}

/** An authority that has lived for two thirds of its life, with enough left of it for a slow machine. */
function aDueAuthority(): Promise<IssuedCertificate> {
  return issueAuthority({ now: Date.now() - 10 * HOUR_MS, lifetimeMs: 14 * HOUR_MS });
}

async function storeAuthority(authority: IssuedCertificate): Promise<void> {
  await stage.writeSecret('authoritySecret', {
    'ca.crt': authority.certificate,
    'ca.key': authority.key,
  });
}

describe('keepers', () => {
  it('that start at once on empty Secrets agree on one authority, trusted everywhere', async () => {
    await stage.createEmptySecrets();
    await installConfigurations();
    const keepers = Array.from({ length: 5 }, () => stage.startKeeper());

    const first = await stage.untilSettled();

    const made = keepers.flatMap(({ logger }) => stepsOf(logger));
    expect(made.filter((step) => step === 'FirstAuthority')).toHaveLength(1);
    expect(made.filter((step) => step === 'ServingMissing')).toHaveLength(1);
    expect(made.filter((step) => step === 'BundleDiffers')).toHaveLength(2);
    expect(first.state.serving?.x509.checkHost(stage.serverName)).toBe(stage.serverName);
  });

  it('make the Secrets where they are missing and may be made', async () => {
    await installConfigurations();
    Array.from({ length: 3 }, () => stage.startKeeper());
    await stage.untilSettled();
  });

  it('fill in the caBundle of configurations that are installed later', async () => {
    await stage.createEmptySecrets();
    stage.startKeeper();
    await eventually(async () => {
      expect((await stage.read()).state.serving).toBeDefined();
    });
    await installConfigurations();
    await stage.untilSettled();
  });

  it('never put a key of the authority where admission reads it', async () => {
    await stage.createEmptySecrets();
    stage.startKeeper();
    await eventually(async () => {
      expect((await stage.read()).state.serving).toBeDefined();
    });
    const { data } = await stage.client.get(stage.secret('servingSecret'));
    const texts = Object.entries(data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(String(value), 'base64').toString(),
    ]);
    expect(Object.fromEntries(texts)).toEqual({
      'tls.crt': expect.stringMatching(
        /^-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n$/,
      ),
      'tls.key': expect.stringContaining('PRIVATE KEY'),
      'ca.crt': expect.stringMatching(
        /^-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n$/,
      ),
    });
    const { signer } = (await stage.read()).state.authorities;
    expect(texts.map(([, text]) => text)).not.toContain(signer?.key);
  });

  it('leave alone what else stands in the Secrets', async () => {
    await stage.writeSecret('authoritySecret', { note: 'mine' });
    await stage.writeSecret('servingSecret', { note: 'mine' });
    await installConfigurations();
    stage.startKeeper();
    await stage.untilSettled();
    for (const which of ['authoritySecret', 'servingSecret'] as const) {
      const { data } = await stage.client.get(stage.secret(which));
      expect(data).toMatchObject({ note: Buffer.from('mine').toString('base64') });
    }
  });
});

describe('a keeper whose rights name its objects', () => {
  const named = (resources: string, names: readonly string[], apiGroups = ['']) => ({
    apiGroups,
    resources: [resources],
    resourceNames: names,
    verbs: ['get', 'list', 'watch', 'patch'],
  });

  it('needs no more, says so where a Secret is missing, and goes on when it is there', async () => {
    const { namespace } = stage.names;
    const registration = ['admissionregistration.k8s.io'];
    const account = await ServiceAccount.create(controlPlane, namespace, [
      named('secrets', ['ca', 'serving']),
      named('mutatingwebhookconfigurations', ['startup-cpu-boost'], registration),
      named('validatingwebhookconfigurations', ['startup-cpu-boost'], registration),
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list'] },
      // For the helper, which waits until the rights are in force.
      { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    ]);
    await installConfigurations();
    const { token } = await account.issueToken();
    const { logger } = stage.startKeeper({ kubeconfigPath: await kubeconfigWith(token) });
    await eventually(() => {
      expect(logger.lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          message: `the Secrets ca and serving must be in namespace ${namespace}, empty at first: one is missing, and this process may not create it`,
        }),
      );
    });
    // An API server that has just started refuses too, which is nothing to wake anybody for.
    const complaints = logger.lines.filter(({ level }) => level === 'warn' || level === 'error');
    expect(complaints[0]).toMatchObject({ level: 'warn' });

    await stage.createEmptySecrets();

    await stage.untilSettled();
  });

  async function kubeconfigWith(token: string): Promise<string> {
    const { dir, kubeconfigPath } = controlPlane;
    const cluster = loadKubeConfig({ kind: 'File', path: kubeconfigPath }).getCurrentCluster();
    const path = join(dir, `keeper-${count}`);
    await writeFile(
      path,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'test',
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
        clusters: [
          {
            name: 'test',
            cluster: {
              server: cluster?.server,
              'certificate-authority-data': cluster?.caData,
            },
          },
        ],
        users: [{ name: 'test', user: { token } }],
      }),
    );
    return path;
  }
});

describe('a rotation', () => {
  it(
    'of authorities and certificates that live for seconds fails no handshake and loses no boost',
    async () => {
      await stage.createEmptySecrets();
      const { namespace } = stage.names;
      await stage.client.create({ ...STARTUP_CPU_BOOSTS, namespace }, aBoost({ namespace }));
      const settings = {
        authorityLifetimeMs: 60_000,
        servingLifetimeMs: 36_000,
        publishWaitMs: 3_000,
      };
      const keepers = Array.from({ length: 3 }, () => stage.startKeeper({ settings }));
      const servers = await Promise.all([stage.startServer(), stage.startServer()]);
      const ports = servers.map(({ port }) => port);
      for (const port of ports) await stage.registerEndpoint(port);
      const balancer = await startBalancer(ports);
      await installConfigurations(balancer.port);
      await eventually(async () => {
        for (const server of servers) expect(server.problem()).toBeUndefined();
        for (const bundle of await stage.bundles()) expect(bundle).not.toBe('');
        const answer = await stage.client.create({ ...PODS, namespace }, aPod({ namespace }), {
          dryRun: true,
        });
        expect(readPod(answer).labels?.has(BOOST_KEY)).toBe(true);
      });

      const over = new AbortController();
      const clients = [
        handshakeAllTheTime(stage, ports, 0, over.signal),
        // An API server that hears late, but within the time that it is given.
        handshakeAllTheTime(stage, ports, 1_000, over.signal),
      ];
      const pods = createPodsAllTheTime(namespace, over.signal);
      const stepsSoFar = (): readonly unknown[] => keepers.flatMap(({ logger }) => stepsOf(logger));
      try {
        await untilTaken('NoLongerServed', stepsSoFar);
      } finally {
        over.abort();
      }

      const counts = await Promise.all(clients);
      expect(counts.flatMap(({ failed }) => failed)).toEqual([]);
      for (const { done } of counts) expect(done).toBeGreaterThan(100);
      const { created, unboosted } = await pods;
      expect(unboosted).toEqual([]);
      expect(created).toBeGreaterThan(100);
      expect(stepsSoFar()).toEqual(
        expect.arrayContaining(['ServingDue', 'ServingOfOtherAuthority']),
      );
      await balancer.stop();
    },
    LONG_TEST_MS,
  );

  /** No limit of its own: certificates come and go with time, not with the speed of this machine. */
  async function untilTaken(step: string, steps: () => readonly unknown[]): Promise<void> {
    while (!steps().includes(step)) await delay(100);
  }

  async function createPodsAllTheTime(
    namespace: string,
    signal: AbortSignal,
  ): Promise<{ readonly created: number; readonly unboosted: readonly string[] }> {
    let created = 0;
    const unboosted: string[] = [];
    while (!signal.aborted) {
      created += 1;
      const name = `pod-${created}`;
      const stored = await stage.client.create({ ...PODS, namespace }, aPod({ namespace, name }));
      if (readPod(stored).labels?.has(BOOST_KEY) !== true) {
        unboosted.push(`${new Date().toISOString()} ${name}`);
      }
      await delay(20);
    }
    return { created, unboosted };
  }

  it('waits with the last step for an endpoint that still serves the old certificate', async () => {
    const old = await aDueAuthority();
    await storeAuthority(old);
    await stage.writeSecret('servingSecret', {});
    await installConfigurations();
    const laggard = await serveLeafOf(old);
    await stage.registerEndpoint(laggard.port);
    const { logger } = stage.startKeeper();

    await eventually(() => {
      expect(stepsOf(logger)).toContain('ServingOfOtherAuthority');
    });
    // More than one look at the endpoint.
    const looks = laggard.handshakes();
    await eventually(() => {
      expect(laggard.handshakes()).toBeGreaterThan(looks + 1);
    });
    expect(stepsOf(logger)).not.toContain('NoLongerServed');
    const [bundle = ''] = await stage.bundles();
    await stage.handshake(laggard.port, bundle);

    const { serving } = (await stage.read()).state;
    laggard.serve({ certificate: serving?.certificate ?? '', key: serving?.key ?? '' });

    const { state } = await stage.untilSettled();
    expect(state.authorities.signer?.certificate.pem).not.toBe(old.certificate);
    await laggard.stop();
  });

  async function serveLeafOf(authority: IssuedCertificate) {
    const now = Date.now();
    const leaf = await issueLeaf({
      authority,
      names: [stage.serverName],
      now,
      notAfter: now + HOUR_MS,
    });
    const server = createServer({ cert: leaf.certificate, key: leaf.key });
    let handshakes = 0;
    server.on('connection', () => (handshakes += 1));
    server.on('tlsClientError', () => undefined);
    server.listen(0, stage.host);
    await once(server, 'listening');
    return {
      port: (server.address() as AddressInfo).port,
      handshakes: () => handshakes,
      serve: ({ certificate, key }: IssuedCertificate) => {
        server.setSecureContext({ cert: certificate, key });
      },
      stop: async () => {
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
      },
    };
  }

  it('is carried on by the next keeper, whichever write the one before died after', async () => {
    const old = await aDueAuthority();
    await storeAuthority(old);
    await stage.writeSecret('servingSecret', {});
    await installConfigurations();
    const server = await stage.startServer();
    await stage.registerEndpoint(server.port);
    const steps: unknown[] = [];

    while (!steps.includes('NoLongerServed')) {
      const mortal = diesAfterOneWrite(stage.store());
      const keeper = stage.startKeeper({ store: mortal.store });
      await mortal.dead;
      await keeper.stop();
      steps.push(...mortal.lastWrite());
    }

    stage.startKeeper();
    const { state } = await stage.untilSettled();
    expect(state.authorities.signer?.certificate.pem).not.toBe(old.certificate);
    await eventually(async () => {
      const [bundle = ''] = await stage.bundles();
      await stage.handshake(server.port, bundle);
    });
  });

  /** Every write is stored, but the writer never hears of it, nor does anything afterwards. */
  function diesAfterOneWrite(real: CertificateStore): {
    readonly store: CertificateStore;
    readonly dead: Promise<void>;
    lastWrite(): readonly string[];
  } {
    let die: () => void = () => undefined;
    let isDead = false;
    let last: string[] = [];
    const dead = new Promise<void>((resolve) => (die = resolve));
    const whileAlive = <T>(call: () => Promise<T>): Promise<T> =>
      isDead ? Promise.reject(new Error('dead')) : call();
    const lastly = async (write: () => Promise<void>, what: readonly string[]): Promise<void> => {
      await whileAlive(write);
      isDead = true;
      last = [...what];
      die();
      throw new Error('dead');
    };
    return {
      store: {
        read: () => whileAlive(() => real.read()),
        askEndpoints: () => whileAlive(() => real.askEndpoints()),
        storeAuthorities: (snapshot, authorities) =>
          lastly(
            () => real.storeAuthorities(snapshot, authorities),
            authorities.previous.length < snapshot.state.authorities.previous.length
              ? ['NoLongerServed']
              : [],
          ),
        storeServing: (...args) => lastly(() => real.storeServing(...args), []),
        publish: (...args) => lastly(() => real.publish(...args), []),
      },
      dead,
      lastWrite: () => last,
    };
  }

  it('takes an expired authority out of the bundle, whoever serves or does not', async () => {
    const [signer, expiring] = await Promise.all([
      issueAuthority({ now: Date.now(), lifetimeMs: 100 * HOUR_MS }),
      issueAuthority({ now: Date.now(), lifetimeMs: 15_000 }),
    ]);
    await stage.writeSecret('authoritySecret', {
      'ca.crt': signer.certificate,
      'ca.key': signer.key,
      'previous.crt': expiring.certificate,
    });
    await stage.writeSecret('servingSecret', {});
    await installConfigurations();
    // No endpoint is known: nobody says that the previous one is not needed.
    const { logger } = stage.startKeeper();
    await eventually(async () => {
      for (const bundle of await stage.bundles()) expect(bundle.match(/BEGIN/g)).toHaveLength(2);
    });
    const { state } = await stage.untilSettled();
    expect(state.authorities.signer?.certificate.pem).toBe(signer.certificate);
    expect(stepsOf(logger)).not.toContain('NoLongerServed');
  });
});

describe('what somebody else has written', () => {
  let port: number;

  beforeEach(async () => {
    await stage.createEmptySecrets();
    await installConfigurations();
    stage.startKeeper();
    stage.startKeeper();
    const server = await stage.startServer();
    ({ port } = server);
    await stage.registerEndpoint(port);
    await stage.untilSettled();
    await untilTrusted();
  });

  async function untilTrusted(): Promise<void> {
    await eventually(async () => {
      for (const bundle of await stage.bundles()) await stage.handshake(port, bundle);
    });
  }

  it.each([
    [
      'a blanked caBundle of the mutating configuration',
      () => stage.setBundle(MUTATING_WEBHOOK_CONFIGURATIONS, ''),
    ],
    [
      'a blanked caBundle of the validating configuration',
      () => stage.setBundle(VALIDATING_WEBHOOK_CONFIGURATIONS, ''),
    ],
    [
      'the caBundle of somebody else',
      async () => stage.setBundle(MUTATING_WEBHOOK_CONFIGURATIONS, (await aCertificate()).ca),
    ],
  ])('is put right: %s', async (_what, damage) => {
    const before = await stage.bundles();
    await damage();
    await untilTrusted();
    await eventually(async () => {
      expect(await stage.bundles()).toEqual(before);
    });
  });

  const garbage = { 'ca.crt': 'x', 'ca.key': '\0', 'tls.crt': '-----BEGIN', 'tls.key': 'y' };

  it('is put right: garbage in the serving Secret, while the server keeps what it has', async () => {
    const before = await stage.bundles();
    await stage.writeSecret('servingSecret', garbage);
    await stage.untilSettled();
    await untilTrusted();
    expect(await stage.bundles()).toEqual(before);
  });

  it('is put right: a serving Secret that was deleted', async () => {
    await stage.client.delete(stage.secret('servingSecret'));
    await stage.untilSettled();
    await untilTrusted();
  });

  it.each([
    ['garbage in the CA Secret', () => stage.writeSecret('authoritySecret', garbage)],
    ['an emptied CA Secret', () => stage.writeSecret('authoritySecret', {})],
    ['a CA Secret that was deleted', () => stage.client.delete(stage.secret('authoritySecret'))],
    [
      'garbage in both Secrets',
      async () => {
        await stage.writeSecret('authoritySecret', garbage);
        await stage.writeSecret('servingSecret', garbage);
      },
    ],
    [
      'a CA Secret that was put back from an old copy',
      async () => storeAuthority(await issueAuthority({ now: Date.now(), lifetimeMs: HOUR_MS })),
    ],
    [
      'an authority without its key',
      async () => {
        const { signer } = (await stage.read()).state.authorities;
        await stage.writeSecret('authoritySecret', { 'ca.crt': signer?.certificate.pem ?? '' });
      },
    ],
  ])('fails no handshake: %s', async (_what, damage) => {
    const before = await stage.read();
    const over = new AbortController();
    const client = handshakeAllTheTime(stage, [port], 0, over.signal);
    await damage();

    await eventually(async () => {
      const { state } = await stage.untilSettled();
      expect(state.authorities.signer?.key).not.toBe(before.state.authorities.signer?.key);
    });

    over.abort();
    const { done, failed } = await client;
    expect(failed).toEqual([]);
    expect(done).toBeGreaterThan(0);
  });
});

describe('a server', () => {
  it('is not Ready until there is a certificate, and says what it waits for', async () => {
    const server = await stage.startServer();
    const secret = `Secret ${stage.names.namespace}/serving`;
    await eventually(() => {
      expect(server.problem()).toBe(`${secret} is not there`);
    });
    await stage.createEmptySecrets();
    await eventually(() => {
      expect(server.problem()).toBe(`${secret} is empty: a controller fills it`);
    });
    stage.startKeeper();
    await eventually(() => {
      expect(server.problem()).toBeUndefined();
    });
  });

  it('serves on with what it has while the API server is away, and when its Secret is broken', async () => {
    await stage.createEmptySecrets();
    await installConfigurations();
    const keeper = stage.startKeeper();
    const server = await stage.startServer();
    const { state } = await stage.untilSettled();
    const [bundle = ''] = await stage.bundles();
    await eventually(() => stage.handshake(server.port, bundle));
    await keeper.stop();

    await stage.writeSecret('servingSecret', { 'tls.crt': 'broken', 'tls.key': 'broken' });
    await eventually(() => {
      expect(server.logger.lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          message: 'the certificate that is served stays: there is no better one',
        }),
      );
    });
    await controlPlane.stopApiServer();
    try {
      const served = await stage.handshake(server.port, bundle);
      expect(served.fingerprint256).toBe(state.serving?.x509.fingerprint256);
      expect(server.problem()).toBeUndefined();
    } finally {
      await controlPlane.startApiServer();
    }
  });

  it('and a keeper tell when the certificates end', async () => {
    await stage.createEmptySecrets();
    const keeper = stage.startKeeper();
    const server = await stage.startServer();
    await eventually(async () => {
      const { authorities, serving } = (await stage.read()).state;
      const [authority] = trustedOf(authorities);
      const ca = (authority?.notAfter ?? 0) / 1_000;
      const leaf = (serving?.notAfter ?? 0) / 1_000;
      const name = 'startup_cpu_boost_certificate_expiry_seconds';
      const text = await keeper.metrics.text();
      expect(text).toContain(`${name}{certificate="ca"} ${ca}\n`);
      expect(text).toContain(`${name}{certificate="serving"} ${leaf}\n`);
      expect(await server.metrics.text()).toContain(`${name}{certificate="serving"} ${leaf}\n`);
    });
  });
});

describe('the processes', () => {
  let started: BoostProcess[] = [];

  afterEach(async () => {
    await Promise.all(started.map((each) => each.stop('SIGKILL')));
    started = [];
  });

  async function start(
    role: 'admission' | 'controller',
    env: Readonly<Record<string, string>>,
  ): Promise<BoostProcess> {
    const { kubeconfigPath } = controlPlane;
    const child = await startProcess(role, {
      kubeconfigPath,
      env: {
        POD_NAMESPACE: stage.names.namespace,
        CA_SECRET: stage.names.authoritySecret,
        SERVING_SECRET: stage.names.servingSecret,
        WEBHOOK_SERVICE: stage.names.service,
        ...env,
      },
    });
    started.push(child);
    return child;
  }

  it('make, serve and publish a certificate by themselves, also if controllers are killed', async () => {
    await stage.createEmptySecrets();
    const env = { CERT_MODE: 'self-managed', CA_PUBLISH_WAIT_SECONDS: '1', WEBHOOK_BIND_ADDR: '' };
    const [admission, another, first, second] = await Promise.all([
      start('admission', env),
      start('admission', env),
      start('controller', env),
      start('controller', env),
    ]);
    for (const { webhookUrl } of [admission, another]) {
      await stage.registerEndpoint(Number(new URL(webhookUrl).port));
    }
    await installConfigurations();
    await stage.untilSettled();
    await first.stop('SIGKILL');
    await second.stop('SIGKILL');
    await stage.writeSecret('authoritySecret', {});
    await stage.setBundle(MUTATING_WEBHOOK_CONFIGURATIONS, '');
    await start('controller', env);
    await stage.untilSettled();
    for (const each of [admission, another]) {
      await eventually(async () => {
        const response = await fetch(each.metricsUrl);
        expect(await response.text()).toMatch(
          /^startup_cpu_boost_certificate_expiry_seconds\{certificate="serving"\} \d+/m,
        );
        const port = Number(new URL(each.webhookUrl).port);
        for (const bundle of await stage.bundles()) {
          await trust(port, bundle);
        }
      });
    }
  });

  async function trust(port: number, ca: string): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost' });
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(10_000) });
    } finally {
      socket.destroy();
    }
  }

  it('serve provided files that were replaced without a restart', async () => {
    const admission = await start('admission', {});
    const port = Number(new URL(admission.webhookUrl).port);
    await trust(port, admission.caBundle);
    const replaced = await aCertificate({ names: [stage.serverName] });
    await writeCertificateFiles(admission.certificateFolder, replaced);
    await eventually(() => trust(port, replaced.ca));
    await expect(trust(port, admission.caBundle)).rejects.toThrow();
  });

  it('leave Secrets and caBundles alone where the certificate is provided', async () => {
    const { ca } = await aCertificate();
    await installConfigurations();
    await stage.setBundle(MUTATING_WEBHOOK_CONFIGURATIONS, ca);
    const controller = await start('controller', { CERT_MODE: 'provided' });
    await eventually(() => {
      expect(controller.logs()).toContainEqual(expect.objectContaining({ message: 'leading' }));
    });
    const { state } = await stage.read();
    expect(state.authorities.signer).toBeUndefined();
    expect(state.serving).toBeUndefined();
    expect(await stage.bundles()).toEqual([ca, '']);
  });
});
