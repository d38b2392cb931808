/** Takes the serving certificate from files that somebody provides, such as a mounted Secret. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../boost-engine';
import { Watchdog, sleep } from '../kube';
import type { Clock } from '../kube';
import type { HealthCheck, Logger } from '../observability';
import type { CertificateSource } from './certificateSource';
import { CertificateError, readCurrentCertificate } from './servingCertificate';
import type { ServingCertificate } from './servingCertificate';

export interface CertificateFilesOptions {
  /** Has `tls.crt` and `tls.key`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The kubelet swaps a mounted Secret's folder a minute or so after the Secret has changed, by a
 * symbolic link. Reading two small files costs next to nothing, and works on every file system; a
 * notification of the link can be missed, and of some mounts there is none.
 */
export const READ_EVERY_MS = 10_000;

export class CertificateFiles implements CertificateSource {
  readonly #options: CertificateFilesOptions;
  readonly #stopping = new AbortController();
  readonly #watchdog: Watchdog;
  #given: ServingCertificate | undefined;
  #problem: string | undefined = 'the certificate has not been read yet';
  #running: Promise<void> | undefined;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
    this.#watchdog = new Watchdog('certificate files', options.clock);
  }

  async start(give: (certificate: ServingCertificate) => void): Promise<void> {
    await this.#look(give);
    this.#running ??= this.#repeat(give);
  }

  problem(): string | undefined {
    return this.#given === undefined ? this.#problem : undefined;
  }

  get liveChecks(): readonly HealthCheck[] {
    return [this.#watchdog.check];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #repeat(give: (certificate: ServingCertificate) => void): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(this.#options.clock, READ_EVERY_MS, signal);
      if (signal.aborted) return;
      await this.#watchdog.during(() => this.#look(give));
    }
  }

  /** Half of a swap is read as a key of another certificate: the next look finds the whole of it. */
  async #look(give: (certificate: ServingCertificate) => void): Promise<void> {
    const { directory, clock, logger } = this.#options;
    try {
      const read = await readCertificateFiles(directory, clock.now());
      const given = this.#given;
      this.#problem = undefined;
      if (read.certificate === given?.certificate && read.key === given.key) return;
      give(read);
      this.#given = read;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      // Said once, not at each look.
      if (problem !== this.#problem) {
        logger.error({ problem, servesAnother: this.#given !== undefined }, 'no certificate');
      }
      this.#problem = problem;
    }
  }
}

/** @throws CertificateError */
export async function readCertificateFiles(
  directory: string,
  now: number,
): Promise<ServingCertificate> {
  const certificate = join(directory, 'tls.crt');
  const key = join(directory, 'tls.key');
  // One after the other: of two files that are missing, always the same one is named.
  const certificateText = await readText(certificate);
  const keyText = await readText(key);
  return readCurrentCertificate(
    { name: certificate, text: certificateText },
    { name: key, text: keyText },
    now,
  );
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const isMissing = isObject(error) && 'code' in error && error.code === 'ENOENT';
    throw new CertificateError(
      isMissing ? `${file} is missing` : `${file} cannot be read: ${String(error)}`,
    );
  }
}
