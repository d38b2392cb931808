/** The admission process: certificate, server and webhooks, from start to an orderly end. */
import type { HealthRoutes, ListenAddress, Logger, Metrics } from '../observability';
import type { CertificateSource } from '../certificates';
import type { Clock } from '../kube';
import { admissionApp } from './app';
import type { NamespaceSource } from './namespaceWatcher';
import { startAdmissionServer } from './server';

export interface AdmissionProcessOptions {
  readonly namespaces: NamespaceSource;
  readonly certificates: CertificateSource;
  readonly settings: {
    readonly webhookAddress: ListenAddress;
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

/**
 * Listens at once, and is Ready when there is a certificate, which may be a matter of seconds or of
 * somebody who provides it. Rejects where the address cannot be used; the error says why.
 */
export async function startAdmission(options: AdmissionProcessOptions): Promise<AdmissionProcess> {
  const { namespaces, certificates, settings, logger, metrics, clock } = options;
  const handle = admissionApp(options).callback();
  const server = await startAdmissionServer({
    handle: (request, response) => void handle(request, response),
    address: settings.webhookAddress,
    logger,
    clock,
  });
  const { port } = server;
  await certificates.start((certificate) => {
    server.replaceCertificate(certificate);
    const { notAfter } = certificate;
    metrics.certificateExpiry.set({ certificate: 'serving' }, notAfter / 1_000);
    logger.info({ port, notAfter: new Date(notAfter).toISOString() }, 'a certificate is served');
  });
  return {
    port,
    checks: {
      live: [...namespaces.liveChecks, ...certificates.liveChecks],
      ready: [
        { name: 'certificate', problem: () => certificates.problem() },
        { name: 'webhook-server', problem: () => server.problem() },
        { name: 'caches', problem: () => namespaces.problem() },
      ],
    },
    stop: async () => {
      await server.drain(settings.drainMs);
      await certificates.stop();
    },
  };
}
