/** Keepers, admission servers and an API-server-like client around the certificates of one namespace. */
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectPlain } from 'node:net';
import { connect } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { NamespaceWatcher, startAdmission } from '../../src/admission';
import { fieldsOf, itemsOf, textOf } from '../../src/boost-engine';
import { CertificateKeeper, ServingSecret } from '../../src/certificates';
import type { CertificateNames, RotationSettings } from '../../src/certificates';
import { ClusterCertificateStore } from '../../src/certificates/certificateStore';
import type {
  CertificateSnapshot,
  CertificateStore,
} from '../../src/certificates/certificateStore';
import { trustedOf } from '../../src/certificates/rotationPlan';
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  createKubeClient,
  loadKubeConfig,
  systemClock,
} from '../../src/kube';
import type { KubeClient, ObjectRef, ResourceRef } from '../../src/kube';
import { createMetrics } from '../../src/observability';
import type { Metrics } from '../../src/observability';
import type { ControlPlane } from './controlPlane';
import { eventually } from './eventually';
import { RecordingLogger } from './recordingLogger';

export const HOUR_MS = 3_600_000;
const SLICES: ResourceRef = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' };
export const WEBHOOK_CONFIGURATION = 'startup-cpu-boost';
const SERVICE = 'webhook';

export interface RunningKeeper {
  readonly logger: RecordingLogger;
  readonly metrics: Metrics;
  stop(): Promise<void>;
}

export interface RunningServer {
  readonly port: number;
  readonly logger: RecordingLogger;
  readonly metrics: Metrics;
  /** Undefined once it is Ready. */
  problem(): string | undefined;
  stop(): Promise<void>;
}

export interface KeeperOptions {
  readonly settings?: Partial<RotationSettings>;
  readonly store?: CertificateStore;
  readonly kubeconfigPath?: string;
}

/**
 * An address of this machine that is none of the loopback: the API server takes no other for an
 * EndpointSlice.
 */
export function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const own = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (own === undefined) throw new Error('this machine has no address but those of the loopback');
  return own.address;
}

export class CertificateStage {
  readonly controlPlane: ControlPlane;
  readonly names: CertificateNames;
  readonly host = ownAddress();
  readonly #running: { stop(): Promise<void> }[] = [];

  private constructor(controlPlane: ControlPlane, namespace: string) {
    this.controlPlane = controlPlane;
    this.names = {
      namespace,
      authoritySecret: 'ca',
      servingSecret: 'serving',
      service: SERVICE,
      webhookConfiguration: WEBHOOK_CONFIGURATION,
    };
  }

  static async create(controlPlane: ControlPlane, namespace: string): Promise<CertificateStage> {
    await controlPlane.client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    return new CertificateStage(controlPlane, namespace);
  }

  get client(): KubeClient {
    return this.controlPlane.client;
  }

  /** The name that the API server would ask for. */
  get serverName(): string {
    return `${SERVICE}.${this.names.namespace}.svc`;
  }

  store(): CertificateStore {
    return new ClusterCertificateStore({
      client: this.client,
      clock: systemClock(),
      logger: new RecordingLogger(),
      names: this.names,
    });
  }

  secret(which: 'authoritySecret' | 'servingSecret'): ObjectRef & { readonly namespace: string } {
    const { namespace } = this.names;
    return { ...SECRETS, namespace, name: this.names[which] };
  }

  /** As the chart does. */
  async createEmptySecrets(): Promise<void> {
    for (const which of ['authoritySecret', 'servingSecret'] as const)
      await this.writeSecret(which, {});
  }

  /** Creates the Secret with these texts, or replaces all that is in it. */
  async writeSecret(
    which: 'authoritySecret' | 'servingSecret',
    texts: Readonly<Record<string, string>>,
  ): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    const ref = this.secret(which);
    const { name, namespace } = ref;
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data };
    await this.client.create(ref, body).catch(() => this.client.replace(ref, body));
  }

  startKeeper(options: KeeperOptions = {}): RunningKeeper {
    const { kubeconfigPath = this.controlPlane.kubeconfigPath } = options;
    const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
    const client = createKubeClient(kubeConfig);
    const logger = new RecordingLogger();
    const metrics = createMetrics();
    const keeper = new CertificateKeeper({
      client,
      clock: systemClock(),
      logger,
      metrics,
      names: this.names,
      settings: {
        names: [this.serverName, '127.0.0.1', this.host],
        authorityLifetimeMs: 1_000 * HOUR_MS,
        servingLifetimeMs: 100 * HOUR_MS,
        publishWaitMs: 500,
        ...options.settings,
      },
      ...(options.store === undefined ? {} : { store: options.store }),
    });
    keeper.start();
    return this.#keep({
      logger,
      metrics,
      stop: async () => {
        await keeper.stop();
        await client.close();
      },
    });
  }

  /** Wired as src/cli/admissionCommand.ts does, on a free port of every address. */
  async startServer(): Promise<RunningServer> {
    const { kubeconfigPath } = this.controlPlane;
    const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
    const client = createKubeClient(kubeConfig);
    const clock = systemClock();
    const logger = new RecordingLogger();
    const metrics = createMetrics();
    const namespaces = new NamespaceWatcher({ kubeConfig, client, clock, logger });
    await namespaces.start();
    const { namespace, servingSecret } = this.names;
    const admission = await startAdmission({
      namespaces,
      certificates: new ServingSecret({
        client,
        clock,
        logger,
        secret: { namespace, name: servingSecret },
      }),
      settings: { webhookAddress: { host: undefined, port: 0 }, drainMs: 0 },
      logger,
      metrics,
      clock,
    });
    return this.#keep({
      port: admission.port,
      logger,
      metrics,
      problem: () => admission.checks.ready.map(({ problem }) => problem()).find((each) => each),
      stop: async () => {
        await admission.stop();
        await namespaces.close();
        await client.close();
      },
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((each) => each.stop()));
    for (const resource of [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS]) {
      await this.client.delete({ ...resource, name: WEBHOOK_CONFIGURATION }).catch(() => undefined);
    }
  }

  /** What the controller manager would write for a Service that selects servers on these ports. */
  async registerEndpoint(port: number): Promise<void> {
    const { namespace } = this.names;
    await this.client.create(
      { ...SLICES, namespace },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: `${SERVICE}-${port}`,
          labels: { 'kubernetes.io/service-name': SERVICE },
        },
        addressType: 'IPv4',
        ports: [{ name: 'webhook', port, protocol: 'TCP' }],
        endpoints: [{ addresses: [this.host], conditions: { ready: true } }],
      },
    );
  }

  async removeEndpoint(port: number): Promise<void> {
    const { namespace } = this.names;
    await this.client.delete({ ...SLICES, namespace, name: `${SERVICE}-${port}` });
  }

  /** The caBundle of each webhook, PEM. */
  async bundles(): Promise<readonly string[]> {
    const configurations = await Promise.all(
      [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS].map((each) =>
        this.client.get({ ...each, name: WEBHOOK_CONFIGURATION }),
      ),
    );
    return configurations.flatMap(({ webhooks }) => itemsOf(webhooks).map(bundleOf));
  }

  async setBundle(resource: ResourceRef, caBundle: string): Promise<void> {
    const value = Buffer.from(caBundle).toString('base64');
    await this.client.patch(
      { ...resource, name: WEBHOOK_CONFIGURATION },
      {
        type: 'json',
        operations: [{ op: 'add', path: '/webhooks/0/clientConfig/caBundle', value }],
      },
    );
  }

  read(): Promise<CertificateSnapshot> {
    return this.store().read();
  }

  /** Waits until one authority and one serving certificate of it are there, and trusted everywhere. */
  async untilSettled(): Promise<CertificateSnapshot> {
    return eventually(async () => {
      const snapshot = await this.read();
      const { authorities, serving } = snapshot.state;
      expect(authorities.hasResidue).toBe(false);
      const trusted = trustedOf(authorities);
      expect(trusted.map(({ fingerprint }) => fingerprint)).toHaveLength(1);
      expect(authorities.signer).toBeDefined();
      expect(serving?.x509.verify(trusted[0]?.x509.publicKey ?? failing())).toBe(true);
      const bundles = await this.bundles();
      expect(bundles).toHaveLength(2);
      for (const bundle of bundles) expect(bundle).toBe(trusted[0]?.pem);
      return snapshot;
    });
  }

  /** Who is served on the port, to a client that trusts this bundle; rejects as the API server would. */
  async handshake(port: number, ca: string): Promise<X509Certificate> {
    const socket = connect({ host: this.host, port, ca, servername: this.serverName });
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(10_000) });
      const certificate = socket.getPeerX509Certificate();
      if (certificate === undefined) throw new Error('no certificate');
      return certificate;
    } finally {
      socket.destroy();
    }
  }

  #keep<T extends { stop(): Promise<void> }>(running: T): T {
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => (stopped ??= running.stop());
    this.#running.push({ stop });
    return { ...running, stop };
  }
}

export interface HandshakeCount {
  done: number;
  readonly failed: string[];
}

/**
 * An API server as far as TLS goes: it learns of a caBundle after `lagMs`, and from then on trusts
 * it and nothing else; opens a new connection to each port all the time.
 */
export async function handshakeAllTheTime(
  stage: CertificateStage,
  ports: readonly number[],
  lagMs: number,
  signal: AbortSignal,
): Promise<HandshakeCount> {
  const count: HandshakeCount = { done: 0, failed: [] };
  const heard: { readonly at: number; readonly bundle: string }[] = [];
  while (!signal.aborted) {
    const [bundle = ''] = await stage.bundles();
    const now = Date.now();
    heard.push({ at: now, bundle });
    while ((heard[1]?.at ?? Infinity) <= now - lagMs) heard.shift();
    const trusted = heard[0]?.bundle ?? '';
    for (const port of ports) {
      await stage.handshake(port, trusted).then(
        () => (count.done += 1),
        (error: unknown) => count.failed.push(`${new Date().toISOString()} ${String(error)}`),
      );
    }
    await delay(20);
  }
  return count;
}

/** Passes connections on to the ports in turn, as a Service does. */
export async function startBalancer(
  ports: readonly number[],
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  let next = 0;
  const server = createServer((client) => {
    const port = ports[next % ports.length] ?? 0;
    next += 1;
    const upstream = connectPlain(port, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: async () => {
      server.close();
      await Promise.resolve();
    },
  };
}

/** The steps in a log, in their order. */
export function stepsOf({ lines }: RecordingLogger): readonly unknown[] {
  return lines.flatMap(({ fields }) => (fields.step === undefined ? [] : [fields.step]));
}

function bundleOf(webhook: unknown): string {
  const clientConfig = fieldsOf(fieldsOf(webhook).get('clientConfig'));
  return Buffer.from(textOf(clientConfig.get('caBundle')) ?? '', 'base64').toString();
}

function failing(): never {
  throw new Error('there is no authority');
}
