/** Takes the serving certificate from the Secret that the controllers keep. */
import { ResourceWatch, SECRETS } from '../kube';
import type { Clock, JsonObject, KubeClient } from '../kube';
import type { HealthCheck, Logger } from '../observability';
import type { CertificateSource } from './certificateSource';
import { readCurrentCertificate } from './servingCertificate';
import type { ServingCertificate } from './servingCertificate';
import { servingTexts } from './storedCertificates';

export interface ServingSecretOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secret: { readonly namespace: string; readonly name: string };
}

/**
 * Guarantees: what was given stays good enough, whatever happens to the Secret or the API server.
 */
export class ServingSecret implements CertificateSource {
  readonly #options: ServingSecretOptions;
  #watch: ResourceWatch | undefined;
  #given: ServingCertificate | undefined;
  #problem: string | undefined;

  constructor(options: ServingSecretOptions) {
    this.#options = options;
  }

  /** Does not wait for the API server, which may be away. */
  start(give: (certificate: ServingCertificate) => void): Promise<void> {
    const { client, clock, logger, secret } = this.#options;
    this.#watch ??= new ResourceWatch({
      client,
      clock,
      logger,
      resource: SECRETS,
      selection: { namespace: secret.namespace, fieldSelector: `metadata.name=${secret.name}` },
      onEvent: ({ type, object }) => {
        if (type === 'DELETED') this.#report(`${this.#name} was deleted`);
        else this.#take(object, give);
      },
    });
    this.#watch.start();
    return Promise.resolve();
  }

  problem(): string | undefined {
    if (this.#given !== undefined) return undefined;
    if (this.#problem !== undefined) return this.#problem;
    return this.#watch?.isSynced === true
      ? `${this.#name} is not there`
      : `${this.#name} has not been read yet`;
  }

  get liveChecks(): readonly HealthCheck[] {
    return this.#watch === undefined ? [] : [this.#watch.liveCheck];
  }

  async stop(): Promise<void> {
    await this.#watch?.stop();
  }

  get #name(): string {
    const { namespace, name } = this.#options.secret;
    return `Secret ${namespace}/${name}`;
  }

  #take(secret: JsonObject, give: (certificate: ServingCertificate) => void): void {
    const { certificate, key } = servingTexts(secret);
    if (certificate === '' && key === '') {
      this.#report(`${this.#name} is empty: a controller fills it`);
      return;
    }
    try {
      const read = readCurrentCertificate(
        { name: `tls.crt of ${this.#name}`, text: certificate },
        { name: `tls.key of ${this.#name}`, text: key },
        this.#options.clock.now(),
      );
      if (read.certificate === this.#given?.certificate && read.key === this.#given.key) return;
      give(read);
      this.#given = read;
      this.#problem = undefined;
    } catch (error) {
      this.#report(error instanceof Error ? error.message : String(error));
    }
  }

  #report(problem: string): void {
    this.#problem = problem;
    const { logger } = this.#options;
    const fields = { problem, servesAnother: this.#given !== undefined };
    if (this.#given === undefined) logger.info(fields, 'waiting for a certificate');
    else logger.error(fields, 'the certificate that is served stays: there is no better one');
  }
}
