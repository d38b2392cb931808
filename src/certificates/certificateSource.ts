/** Where a server gets its certificate from, at the start and whenever it is replaced. */
import type { HealthCheck } from '../observability';
import type { ServingCertificate } from './servingCertificate';

export interface CertificateSource {
  /**
   * Gives the certificate if there is one yet, and each that comes later; one that cannot be used is
   * logged and never given. Resolves when the first look is over; never rejects.
   */
  start(give: (certificate: ServingCertificate) => void): Promise<void>;
  /** Why nothing was given yet; undefined once something was, whatever comes after. */
  problem(): string | undefined;
  /** Whether the looking goes on. */
  readonly liveChecks: readonly HealthCheck[];
  stop(): Promise<void>;
}
