/** The admission process: certificate, server and webhooks, from start to an orderly end. */
import type { HealthRoutes, ListenAddress, Logger, Metrics } from '../observability';
import type { Clock } from '../kube';
import { admissionApp } from './app';
import { loadOrCreateCertificate } from './certificate';
import type { NamespaceSource } from './namespaceWatcher';
import { startAdmissionServer } from './server';

export interface AdmissionProcessOptions {
  readonly namespaces: NamespaceSource;
  readonly settings: {
    readonly webhookAddress: ListenAddress;
    readonly certificateDirectory: string;
    readonly dnsNames: readonly string[];
    /** How long reviews are still answered after `stop` was called. */
    readonly drainMs: number;
  };
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export interface AdmissionProcess {
  readonly port: number;
  readonly checks: HealthRoutes;
  /** Resolves when the last review is answered. */
  stop(): Promise<void>;
}

/** Rejects where the certificate or the address cannot be used; the error says which and why. */
export async function startAdmission(options: AdmissionProcessOptions): Promise<AdmissionProcess> {
  const { namespaces, settings, logger, clock } = options;
  const certificate = await loadOrCreateCertificate({
    directory: settings.certificateDirectory,
    dnsNames: settings.dnsNames,
    clock,
  });
  const handle = admissionApp(options).callback();
  const server = await startAdmissionServer({
    handle: (request, response) => void handle(request, response),
    certificate,
    address: settings.webhookAddress,
    logger,
    clock,
  });
  const { port } = server;
  const { origin, notAfter } = certificate;
  logger.info(
    { port, certificate: origin, notAfter: new Date(notAfter).toISOString() },
    'webhooks are served',
  );
  return {
    port,
    checks: {
      live: [],
      ready: [
        { name: 'webhook-server', problem: () => server.problem() },
        { name: 'caches', problem: () => namespaces.problem() },
      ],
    },
    stop: () => server.drain(settings.drainMs),
  };
}
