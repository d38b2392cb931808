/** The SDK's Operator on our own client: the same calls for a subclass, none of them ends the process. */
import Operator, { ResourceEventType, ResourceMetaImpl } from '@dot-i/k8s-operator';
import type { OperatorLogger, ResourceEvent, ResourceMeta } from '@dot-i/k8s-operator';
import { CoreV1Api } from '@kubernetes/client-node';
import type { KubernetesObject } from '@kubernetes/client-node';
import type { HealthCheck } from '../observability';
import type { Clock } from './clock';
import { isJsonObject } from './jsonObject';
import type { JsonObject } from './jsonObject';
import type { KubeClient, Patch, Selection } from './kubeClient';
import type { KubeConfig } from './kubeConfig';
import type { ResourceChange } from './resourceCache';
import { ResourceWatch } from './resourceWatch';
import type { WatchLogger } from './resourceWatch';
import { collectionPath } from './resourceRef';
import type { CollectionRef, ObjectRef, ResourceRef } from './resourceRef';

export interface ResilientOperatorOptions {
  readonly kubeConfig: KubeConfig;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: WatchLogger;
  /** Milliseconds between comparisons of each watch with the server; 10 minutes unless given. */
  readonly checkEveryMs?: number;
  /** In [0, 1); Math.random unless given. */
  readonly random?: () => number;
}

/** The SDK's event, whose object is the raw one: fields that no type knows are there too. */
export type RawResourceEvent = ResourceEvent & { readonly object: KubernetesObject & JsonObject };

export interface WatchedSelection extends Selection {
  /** Makes objects smaller before they are kept; apiVersion, kind and metadata's identity must stay. */
  readonly transform?: (object: JsonObject) => JsonObject;
}

/**
 * A subclass writes `init()` as the SDK's documentation shows.
 *
 * Guarantees: a watch never ends before `close`; a handler that throws is logged; status and
 * finalizer writes throw ApiError.
 * Caveats: the SDK's constructor reads the default kubeconfig before ours is put in its place, so
 * a $KUBECONFIG that cannot be read fails construction whatever is given here.
 */
export abstract class ResilientOperator extends Operator {
  protected readonly client: KubeClient;
  protected readonly clock: Clock;
  readonly #options: ResilientOperatorOptions;
  readonly #watches: ResourceWatch[] = [];

  constructor(options: ResilientOperatorOptions) {
    super(operatorLogger(options.logger));
    this.kubeConfig = options.kubeConfig;
    this.k8sApi = options.kubeConfig.makeApiClient(CoreV1Api);
    this.client = options.client;
    this.clock = options.clock;
    this.#options = options;
  }

  /** Begins to stop; `close` tells when it is done. */
  override stop(): void {
    void this.close();
  }

  /** Stops every watch; settles when their handlers have returned. */
  async close(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }

  /** All watches, for readiness and metrics. */
  protected get watches(): readonly ResourceWatch[] {
    return this.#watches;
  }

  /** One for each watch: whether its loop goes on. */
  get liveChecks(): readonly HealthCheck[] {
    return this.#watches.map((watch) => watch.liveCheck);
  }

  /** Starts the watch and returns at once: the API server may be away when the program starts. */
  protected override watchResource(
    group: string,
    version: string,
    plural: string,
    onEvent: (event: RawResourceEvent) => Promise<void>,
    namespace?: string,
  ): Promise<void> {
    const selection = namespace === undefined ? {} : { namespace };
    this.watchSelected({ group, version, plural }, selection, onEvent);
    return Promise.resolve();
  }

  /** As `watchResource`, for a part of the resource; the watch has the cache and tells its state. */
  protected watchSelected(
    resource: ResourceRef,
    { transform, ...selection }: WatchedSelection,
    onEvent: (event: RawResourceEvent) => void | Promise<void>,
  ): ResourceWatch {
    const { client, clock, logger, checkEveryMs, random } = this.#options;
    const watch = new ResourceWatch({
      client,
      clock,
      logger,
      resource,
      selection,
      onEvent: (change) => onEvent(resourceEvent(resource.plural, change)),
      ...(transform === undefined ? {} : { transform }),
      ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
      ...(random === undefined ? {} : { random }),
    });
    this.#watches.push(watch);
    watch.start();
    return watch;
  }

  protected override getCustomResourceApiUri(
    group: string,
    version: string,
    plural: string,
    namespace?: string,
  ): string {
    const collection: CollectionRef = { group, version, plural };
    const path = collectionPath(
      namespace === undefined ? collection : { ...collection, namespace },
    );
    return `${this.kubeConfig.getCurrentCluster()?.server ?? ''}${path}`;
  }

  /** Replaces the whole status; the resource version of `meta` is no precondition. */
  protected override setResourceStatus(meta: ResourceMeta, status: unknown): Promise<ResourceMeta> {
    return this.#writeStatus(meta, {
      type: 'json',
      operations: [{ op: 'add', path: '/status', value: status }],
    });
  }

  /** Merges into the status (RFC 7386); the resource version of `meta` is no precondition. */
  protected override patchResourceStatus(
    meta: ResourceMeta,
    status: unknown,
  ): Promise<ResourceMeta> {
    return this.#writeStatus(meta, { type: 'merge', body: { status } });
  }

  /** Replaces the list, so the object must be the one that `meta` was read from. */
  protected override async setResourceFinalizers(
    meta: ResourceMeta,
    finalizers: string[],
  ): Promise<void> {
    const { resourceVersion } = meta;
    await this.client.patch(objectRef(meta), {
      type: 'merge',
      body: { metadata: { finalizers, resourceVersion } },
    });
  }

  /** The chart installs the definition: an operator with the right to write it could widen its own. */
  protected override registerCustomResourceDefinition(crdFile: string): Promise<never> {
    return Promise.reject(
      new Error(
        `${crdFile} is not registered by the operator; install the CustomResourceDefinition with the Helm chart or kubectl apply -f crds/`,
      ),
    );
  }

  async #writeStatus(meta: ResourceMeta, patch: Patch): Promise<ResourceMeta> {
    const answer = await this.client.patch({ ...objectRef(meta), subresource: 'status' }, patch);
    return ResourceMetaImpl.createWithId(meta.id, kubernetesObject(answer));
  }
}

/** The SDK's `id` is `<plural>.<apiVersion>`. */
function objectRef({ id, apiVersion, namespace, name }: ResourceMeta): ObjectRef {
  const suffix = `.${apiVersion}`;
  if (!id.endsWith(suffix)) {
    throw new RangeError(`resource id ${JSON.stringify(id)} must end with ${suffix}`);
  }
  const slash = apiVersion.indexOf('/');
  return {
    group: apiVersion.slice(0, Math.max(slash, 0)),
    version: apiVersion.slice(slash + 1),
    plural: id.slice(0, -suffix.length),
    name,
    ...(namespace === undefined ? {} : { namespace }),
  };
}

const EVENT_TYPES: Readonly<Record<ResourceChange['type'], ResourceEventType>> = {
  ADDED: ResourceEventType.Added,
  MODIFIED: ResourceEventType.Modified,
  DELETED: ResourceEventType.Deleted,
};

function resourceEvent(plural: string, { type, object }: ResourceChange): RawResourceEvent {
  const own = kubernetesObject(withOwnFinalizers(object));
  return {
    meta: ResourceMetaImpl.createWithPlural(plural, own),
    type: EVENT_TYPES[type],
    object: own,
  };
}

/** The SDK's handleResourceFinalizer pushes into the event's list, which must not be the cache's. */
function withOwnFinalizers(object: JsonObject): JsonObject {
  const { metadata } = object;
  return isJsonObject(metadata) && Array.isArray(metadata.finalizers)
    ? { ...object, metadata: { ...metadata, finalizers: metadata.finalizers.slice() } }
    : object;
}

function kubernetesObject(object: JsonObject): KubernetesObject & JsonObject {
  if (!isKubernetesObject(object)) {
    throw new TypeError('an object of the API server has no apiVersion, kind or metadata');
  }
  return object;
}

/** Checks what the SDK reads; the timestamps in metadata stay the strings that they are on the wire. */
function isKubernetesObject(object: JsonObject): object is KubernetesObject & JsonObject {
  return (
    typeof object.apiVersion === 'string' &&
    typeof object.kind === 'string' &&
    isJsonObject(object.metadata)
  );
}

function operatorLogger(logger: WatchLogger): OperatorLogger {
  return {
    debug: (message) => {
      logger.debug({}, message);
    },
    info: (message) => {
      logger.info({}, message);
    },
    warn: (message) => {
      logger.warn({}, message);
    },
    error: (message) => {
      logger.error({}, message);
    },
  };
}
