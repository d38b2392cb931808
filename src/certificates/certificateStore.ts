/** Where the certificates are: two Secrets and two webhook configurations of the API server. */
import {
  ApiError,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  identityOf,
  ifThere,
} from '../kube';
import type { Clock, JsonObject, KubeClient, ObjectRef, ResourceRef } from '../kube';
import type { Logger } from '../observability';
import type { AuthorityCertificate } from './authority';
import { askAdmissionEndpoints } from './admissionEndpoints';
import { bundlePatch, readBundles } from './caBundle';
import type { IssuedCertificate } from './issuer';
import type { AdmissionEndpoints, CertificateState, Configuration } from './rotationPlan';
import { authorityData, readAuthorities, readServing, servingData } from './storedCertificates';
import type { Authorities } from './storedCertificates';

export interface CertificateNames {
  /** Of the Secrets and of the Service. */
  readonly namespace: string;
  readonly authoritySecret: string;
  readonly servingSecret: string;
  readonly service: string;
  /** Of the mutating and of the validating configuration. */
  readonly webhookConfiguration: string;
}

/** Everything at one moment, with the versions that writes are guarded by. */
export interface CertificateSnapshot {
  readonly state: CertificateState;
  /** Undefined where the object is not there. */
  readonly versions: Readonly<Record<Part, string | undefined>>;
}

type Part = 'authorities' | 'serving' | Configuration;

/** Each write is refused, as a Conflict and the like, where its object is not that of the snapshot. */
export interface CertificateStore {
  read(): Promise<CertificateSnapshot>;
  askEndpoints(): Promise<AdmissionEndpoints>;
  storeAuthorities(snapshot: CertificateSnapshot, authorities: Authorities): Promise<void>;
  storeServing(
    snapshot: CertificateSnapshot,
    leaf: IssuedCertificate,
    authority: AuthorityCertificate,
  ): Promise<void>;
  publish(snapshot: CertificateSnapshot, configuration: Configuration, text: string): Promise<void>;
}

export const WEBHOOK_CONFIGURATIONS: Readonly<Record<Configuration, ResourceRef>> = {
  mutating: MUTATING_WEBHOOK_CONFIGURATIONS,
  validating: VALIDATING_WEBHOOK_CONFIGURATIONS,
};

export interface ClusterCertificateStoreOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly names: CertificateNames;
}

/** On the API server. Rejects with ApiError. */
export class ClusterCertificateStore implements CertificateStore {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #names: CertificateNames;

  constructor({ client, clock, logger, names }: ClusterCertificateStoreOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#logger = logger;
    this.#names = names;
  }

  /** The CA Secret is read last: it is never older than what the plan compares it with. */
  async read(): Promise<CertificateSnapshot> {
    const [mutating, validating, serving] = await Promise.all([
      this.#get(this.#configuration('mutating')),
      this.#get(this.#configuration('validating')),
      this.#get(this.#secret('servingSecret')),
    ]);
    const authorities = await this.#get(this.#secret('authoritySecret'));
    return {
      state: {
        authorities: readAuthorities(authorities),
        serving: readServing(serving),
        bundles: { mutating: readBundles(mutating), validating: readBundles(validating) },
        endpoints: undefined,
      },
      versions: {
        authorities: versionOf(authorities),
        serving: versionOf(serving),
        mutating: versionOf(mutating),
        validating: versionOf(validating),
      },
    };
  }

  /** Without the right to see them, all are silent: a rotation then ends later, but it ends. */
  async askEndpoints(): Promise<AdmissionEndpoints> {
    const { namespace, service } = this.#names;
    try {
      return await askAdmissionEndpoints(this.#client, this.#clock, { namespace, name: service });
    } catch (error) {
      if (!(error instanceof ApiError) || error.failure.kind !== 'Forbidden') throw error;
      this.#logger.warn({ error }, 'the endpoints of the admission Service cannot be seen');
      return { served: [], silent: 0 };
    }
  }

  storeAuthorities({ versions }: CertificateSnapshot, authorities: Authorities): Promise<void> {
    return this.#writeSecret('authoritySecret', versions.authorities, authorityData(authorities));
  }

  storeServing(
    { versions }: CertificateSnapshot,
    leaf: IssuedCertificate,
    authority: AuthorityCertificate,
  ): Promise<void> {
    return this.#writeSecret('servingSecret', versions.serving, servingData(leaf, authority));
  }

  async publish(
    { state, versions }: CertificateSnapshot,
    configuration: Configuration,
    text: string,
  ): Promise<void> {
    const operations = bundlePatch(
      state.bundles[configuration],
      text,
      versions[configuration] ?? '',
    );
    await this.#client.patch(this.#configuration(configuration), { type: 'json', operations });
  }

  /** What else stands in the Secret stays. */
  async #writeSecret(
    which: 'authoritySecret' | 'servingSecret',
    resourceVersion: string | undefined,
    data: JsonObject,
  ): Promise<void> {
    const ref = this.#secret(which);
    if (resourceVersion !== undefined) {
      const body = { metadata: { resourceVersion }, data };
      await this.#client.patch(ref, { type: 'merge', body });
      return;
    }
    const { namespace, name } = ref;
    await this.#client.create(
      { ...SECRETS, ...(namespace === undefined ? {} : { namespace }) },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name },
        type: 'Opaque',
        data: Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null)),
      },
    );
  }

  #get(ref: ObjectRef): Promise<JsonObject | undefined> {
    return ifThere(this.#client.get(ref));
  }

  #secret(which: 'authoritySecret' | 'servingSecret'): ObjectRef {
    return { ...SECRETS, namespace: this.#names.namespace, name: this.#names[which] };
  }

  #configuration(configuration: Configuration): ObjectRef {
    return { ...WEBHOOK_CONFIGURATIONS[configuration], name: this.#names.webhookConfiguration };
  }
}

function versionOf(object: JsonObject | undefined): string | undefined {
  return object === undefined ? undefined : identityOf(object)?.resourceVersion;
}
