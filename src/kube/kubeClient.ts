/** The typed-by-nobody Kubernetes client: raw JSON in and out, every call bounded, errors as ApiError. */
import { Agent, errors } from 'undici';
import type { Dispatcher } from 'undici';
import type { JsonPatch } from '../boost-engine';
import { ApiError, failureOfAnswer } from './apiFailure';
import type { ApiFailure } from './apiFailure';
import { systemClock } from './clock';
import type { Clock } from './clock';
import { isJsonObject, listPage, parseJsonObject } from './jsonObject';
import type { JsonObject, ListPage } from './jsonObject';
import { readCredentials } from './kubeConfig';
import type { Credentials, KubeConfig } from './kubeConfig';
import { collectionPath, describeRef, groupVersionPath, objectPath } from './resourceRef';
import type { CollectionRef, ObjectRef, ResourceRef } from './resourceRef';
import { parseWatchEvent, watchLines } from './watchStream';
import type { WatchEvent } from './watchStream';

export type Patch =
  | { readonly type: 'json'; readonly operations: JsonPatch }
  | { readonly type: 'merge' | 'strategic'; readonly body: JsonObject }
  /** Server-side apply, with force: a controller owns the fields that it applies. */
  | { readonly type: 'apply'; readonly body: JsonObject; readonly fieldManager: string };

export interface CallOptions {
  /** From sending to the last byte of the answer; 10 s unless given. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** The server does everything but store. */
  readonly dryRun?: boolean;
}

export type CreateOptions = WriteOptions;

export interface DeleteOptions extends WriteOptions {
  /** Precondition: delete only the object with this uid. */
  readonly uid?: string;
  readonly gracePeriodSeconds?: number;
}

export interface Selection {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends Selection, CallOptions {
  /** Objects per page; all in one page unless given. */
  readonly limit?: number;
  /** The token of the page before; the other options must then be the same. */
  readonly continue?: string;
  /** The list exactly as it was at this version; Gone if that is compacted. */
  readonly exactResourceVersion?: string;
  /** `Metadata`: the items have nothing else, which is a fraction of a pod. Whole objects unless given. */
  readonly parts?: 'Whole' | 'Metadata';
}

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  /** After this time the server ends the stream. */
  readonly timeoutSeconds: number;
  readonly signal?: AbortSignal;
}

export interface KubeClient {
  get(ref: ObjectRef, options?: CallOptions): Promise<JsonObject>;
  /** One page; items get the apiVersion and kind that a list leaves out. */
  list(resource: ResourceRef, options?: ListOptions): Promise<ListPage>;
  create(resource: CollectionRef, body: JsonObject, options?: CreateOptions): Promise<JsonObject>;
  replace(ref: ObjectRef, body: JsonObject, options?: WriteOptions): Promise<JsonObject>;
  patch(ref: ObjectRef, patch: Patch, options?: WriteOptions): Promise<JsonObject>;
  delete(ref: ObjectRef, options?: DeleteOptions): Promise<JsonObject>;
  /**
   * Events as they come, bookmarks included; ends when the server closes the stream. Throws
   * ApiError if it cannot start, breaks, or the server sends an ERROR event.
   */
  watch(resource: ResourceRef, options: WatchOptions): AsyncIterable<WatchEvent>;
  /** Whether discovery names the resource: tells a missing CRD from a server that is starting. */
  serves(resource: ResourceRef, options?: CallOptions): Promise<boolean>;
  /** Ends idle connections at once and the others when their calls are over. */
  close(): Promise<void>;
}

export interface KubeClientOptions {
  readonly clock?: Clock;
  /** Hears the Date header of each answer, and how long the answer took in milliseconds. */
  readonly onServerDate?: (date: string, tookMs: number) => void;
  /** Sent with every request; the audit log shows it. */
  readonly userAgent?: string;
  /** For every call that gives none; 10 s unless given. */
  readonly timeoutMs?: number;
}

/** Longer than any webhook or etcd round trip that ends well, shorter than a reader's patience. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** A page of 500 objects of the largest size that etcd takes would be more; real ones are far below. */
const LARGEST_ANSWER_BYTES = 128 * 2 ** 20;
/** Credentials are read again after this time; rotation of files is announced hours ahead. */
const CREDENTIALS_AGE_MS = 10_000;
/** A watch without a byte for so long is dead, even if its owner forgot to set a deadline. */
const WATCH_BODY_TIMEOUT_MS = 330_000;

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const CONTENT_TYPES: Readonly<Record<Patch['type'], string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

export function createKubeClient(
  kubeConfig: KubeConfig,
  options: KubeClientOptions = {},
): KubeClient {
  return new HttpKubeClient(kubeConfig, options);
}

type Query = Readonly<Record<string, string | number | undefined>>;

interface Call {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly description: string;
  readonly query?: Query;
  /** The media type of the answer; plain JSON unless given. */
  readonly accept?: string;
  readonly body?: { readonly contentType: string; readonly json: unknown };
}

interface Answer {
  readonly status: number;
  readonly retryAfter?: string;
  readonly body: Dispatcher.ResponseData['body'];
}

class HttpKubeClient implements KubeClient {
  private readonly clock: Clock;
  private readonly onServerDate: KubeClientOptions['onServerDate'];
  private readonly userAgent: string;
  private readonly timeoutMs: number;
  private kubeConfig: KubeConfig;
  private connection: Connection | undefined;
  private readonly retired = new Set<Promise<void>>();

  constructor(kubeConfig: KubeConfig, options: KubeClientOptions) {
    this.kubeConfig = kubeConfig;
    this.clock = options.clock ?? systemClock();
    this.onServerDate = options.onServerDate;
    this.userAgent = options.userAgent ?? 'startup-cpu-boost';
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  get(ref: ObjectRef, options: CallOptions = {}): Promise<JsonObject> {
    return this.object(
      { method: 'GET', path: objectPath(ref), description: `GET ${describeRef(ref)}` },
      options,
    );
  }

  async list(resource: ResourceRef, options: ListOptions = {}): Promise<ListPage> {
    const description = `LIST ${describeRef({ ...resource, ...selected(options) })}`;
    const body = await this.object(
      {
        method: 'GET',
        path: collectionPath({ ...resource, ...selected(options) }),
        description,
        ...(options.parts === 'Metadata' ? { accept: METADATA_LIST } : {}),
        query: {
          labelSelector: options.labelSelector,
          fieldSelector: options.fieldSelector,
          limit: options.limit,
          ...(options.continue === undefined
            ? {
                resourceVersion: options.exactResourceVersion,
                resourceVersionMatch:
                  options.exactResourceVersion === undefined ? undefined : 'Exact',
              }
            : { continue: options.continue }),
        },
      },
      options,
    );
    const page = listPage(body);
    if (page === undefined) {
      throw malformed(description, 'the answer is not a list', body);
    }
    return page;
  }

  create(
    resource: CollectionRef,
    body: JsonObject,
    options: CreateOptions = {},
  ): Promise<JsonObject> {
    return this.object(
      {
        method: 'POST',
        path: collectionPath(resource),
        description: `CREATE ${describeRef(resource)}`,
        query: dryRun(options),
        body: { contentType: 'application/json', json: body },
      },
      options,
    );
  }

  replace(ref: ObjectRef, body: JsonObject, options: WriteOptions = {}): Promise<JsonObject> {
    return this.object(
      {
        method: 'PUT',
        path: objectPath(ref),
        description: `REPLACE ${describeRef(ref)}`,
        query: dryRun(options),
        body: { contentType: 'application/json', json: body },
      },
      options,
    );
  }

  patch(ref: ObjectRef, patch: Patch, options: WriteOptions = {}): Promise<JsonObject> {
    return this.object(
      {
        method: 'PATCH',
        path: objectPath(ref),
        description: `PATCH ${describeRef(ref)}`,
        query: {
          ...dryRun(options),
          ...(patch.type === 'apply' ? { fieldManager: patch.fieldManager, force: 'true' } : {}),
        },
        body: {
          contentType: CONTENT_TYPES[patch.type],
          json: patch.type === 'json' ? patch.operations : patch.body,
        },
      },
      options,
    );
  }

  delete(ref: ObjectRef, options: DeleteOptions = {}): Promise<JsonObject> {
    return this.object(
      {
        method: 'DELETE',
        path: objectPath(ref),
        description: `DELETE ${describeRef(ref)}`,
        query: dryRun(options),
        body: {
          contentType: 'application/json',
          json: {
            apiVersion: 'v1',
            kind: 'DeleteOptions',
            gracePeriodSeconds: options.gracePeriodSeconds,
            ...(options.uid === undefined ? {} : { preconditions: { uid: options.uid } }),
          },
        },
      },
      options,
    );
  }

  async serves(resource: ResourceRef, options: CallOptions = {}): Promise<boolean> {
    const path = groupVersionPath(resource);
    const description = `GET ${path}`;
    let document: JsonObject;
    try {
      document = await this.object({ method: 'GET', path, description }, options);
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'NotFound') {
        return false;
      }
      throw error;
    }
    if (!Array.isArray(document.resources)) {
      throw malformed(description, 'the answer is not a discovery document', document);
    }
    return document.resources.some(
      (served: unknown) => isJsonObject(served) && served.name === resource.plural,
    );
  }

  async *watch(resource: ResourceRef, options: WatchOptions): AsyncGenerator<WatchEvent, void> {
    const call: Call = {
      method: 'GET',
      path: collectionPath({ ...resource, ...selected(options) }),
      description: `WATCH ${describeRef({ ...resource, ...selected(options) })}`,
      query: {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: options.timeoutSeconds,
        labelSelector: options.labelSelector,
        fieldSelector: options.fieldSelector,
      },
    };
    // Ends the request on every way out, so that a caller who breaks off frees the connection.
    const ending = new AbortController();
    const begunAt = this.clock.monotonic();
    const deadline = this.deadline(this.timeoutMs, options.signal);
    const end = (): void => {
      ending.abort();
    };
    options.signal?.addEventListener('abort', end, { once: true });
    try {
      const answer = await this.accepted(
        call,
        AbortSignal.any([deadline.signal, ending.signal]),
        WATCH_BODY_TIMEOUT_MS,
      );
      deadline.cancel();
      for await (const line of watchLines(answer.body)) {
        yield parseWatchEvent(line, call.description, this.clock.now());
      }
    } catch (error) {
      throw this.callFailed(error, call, {
        begunAt,
        cancelled: options.signal?.aborted === true,
        timedOut: deadline.signal.aborted,
      });
    } finally {
      deadline.cancel();
      options.signal?.removeEventListener('abort', end);
      end();
    }
  }

  async close(): Promise<void> {
    if (this.connection !== undefined) {
      this.retire(this.connection);
      this.connection = undefined;
    }
    await Promise.all(this.retired);
  }

  /** Sends a call whose answer is one JSON object. */
  private async object(call: Call, options: CallOptions): Promise<JsonObject> {
    const timeoutMs = options.timeoutMs ?? this.timeoutMs;
    const begunAt = this.clock.monotonic();
    const deadline = this.deadline(timeoutMs, options.signal);
    try {
      const answer = await this.accepted(call, deadline.signal, timeoutMs);
      const body = await readText(answer.body, call.description);
      const object = parseJsonObject(body);
      if (object === undefined) {
        throw malformed(call.description, 'the answer is not a JSON object', body.slice(0, 200));
      }
      return object;
    } catch (error) {
      throw this.callFailed(error, call, {
        begunAt,
        cancelled: options.signal?.aborted === true,
        timedOut: deadline.signal.aborted,
      });
    } finally {
      deadline.cancel();
    }
  }

  /**
   * A call without an answer in time may have gone into a connection that is silent and will stay so,
   * and what has silenced it may have silenced all: none of those from before is used again, or each
   * would cost one call its time. HTTP/1.1 has no ping to tell them apart.
   */
  private callFailed(
    error: unknown,
    { description }: Call,
    { begunAt, ...ending }: Ending & { readonly begunAt: number },
  ): ApiError {
    const failed = asApiError(error, description, ending);
    const { connection } = this;
    if (failed.failure.kind === 'Timeout' && connection && connection.openedAt <= begunAt) {
      this.connection = undefined;
      this.retire(connection);
    }
    return failed;
  }

  /** Sends until the server accepts; a 401 is repeated once with credentials read anew. */
  private async accepted(call: Call, signal: AbortSignal, bodyTimeoutMs: number): Promise<Answer> {
    const first = await this.send(call, await this.connected(), signal, bodyTimeoutMs);
    if (first.status !== 401) {
      return this.expectSuccess(call, first);
    }
    await first.body.dump();
    this.kubeConfig = this.kubeConfig.fresh();
    const second = await this.send(call, await this.reconnected(), signal, bodyTimeoutMs);
    return this.expectSuccess(call, second);
  }

  private async expectSuccess(call: Call, answer: Answer): Promise<Answer> {
    if (answer.status >= 200 && answer.status < 300) {
      return answer;
    }
    throw new ApiError(
      failureOfAnswer({
        request: call.description,
        status: answer.status,
        body: await readText(answer.body, call.description),
        now: this.clock.now(),
        sent: call.body?.contentType === CONTENT_TYPES.json ? 'JsonPatch' : 'Other',
        ...(answer.retryAfter === undefined ? {} : { retryAfter: answer.retryAfter }),
      }),
    );
  }

  private async send(
    call: Call,
    { agent, credentials }: Connection,
    signal: AbortSignal,
    bodyTimeout: number,
  ): Promise<Answer> {
    const sentAt = this.clock.monotonic();
    const response = await agent.request({
      origin: credentials.origin,
      path: `${credentials.pathPrefix}${call.path}${queryString(call.query)}`,
      method: call.method,
      headers: {
        accept: call.accept ?? 'application/json',
        'user-agent': this.userAgent,
        ...credentials.headers,
        ...(call.body === undefined ? {} : { 'content-type': call.body.contentType }),
      },
      body: call.body === undefined ? null : JSON.stringify(call.body.json),
      // The deadline is the caller's signal; these bound what a lost signal would leave behind.
      headersTimeout: bodyTimeout,
      bodyTimeout,
      signal,
    });
    const { date, 'retry-after': retryAfter } = response.headers;
    if (typeof date === 'string') this.onServerDate?.(date, this.clock.monotonic() - sentAt);
    return {
      status: response.statusCode,
      body: response.body,
      ...(typeof retryAfter === 'string' ? { retryAfter } : {}),
    };
  }

  private async connected(): Promise<Connection> {
    const { connection } = this;
    if (connection && this.clock.monotonic() - connection.readAt < CREDENTIALS_AGE_MS) {
      return connection;
    }
    try {
      return await this.reconnected();
    } catch (error) {
      // A file that is being replaced is missing for a moment; what was read before still works.
      if (connection === undefined) {
        throw error;
      }
      return connection;
    }
  }

  /** Reads the credentials; a new agent only if what the connections were made with has changed. */
  private async reconnected(): Promise<Connection> {
    const credentials = await readCredentials(this.kubeConfig);
    const before = this.connection;
    const readAt = this.clock.monotonic();
    if (before !== undefined && sameServer(before.credentials, credentials)) {
      this.connection = { ...before, credentials, readAt };
      return this.connection;
    }
    this.connection = { agent: newAgent(credentials), credentials, readAt, openedAt: readAt };
    if (before !== undefined) {
      this.retire(before);
    }
    return this.connection;
  }

  /** Lets running calls and watches of an old agent end by themselves. */
  private retire({ agent }: Connection): void {
    const closed = agent.close().catch(() => undefined);
    this.retired.add(closed);
    void closed.then(() => this.retired.delete(closed));
  }

  private deadline(
    ms: number,
    signal: AbortSignal | undefined,
  ): { readonly signal: AbortSignal; cancel(): void } {
    const controller = new AbortController();
    const end = (): void => {
      controller.abort();
    };
    if (signal?.aborted === true) {
      end();
    }
    signal?.addEventListener('abort', end, { once: true });
    const timer = this.clock.setTimer(ms, end);
    return {
      signal: controller.signal,
      cancel: () => {
        timer.cancel();
        signal?.removeEventListener('abort', end);
      },
    };
  }
}

interface Connection {
  readonly agent: Agent;
  readonly credentials: Credentials;
  /** When the credentials were read, and when the agent was made; monotonic milliseconds. */
  readonly readAt: number;
  readonly openedAt: number;
}

function newAgent({ tls, origin }: Credentials): Agent {
  return new Agent({
    // Node's HTTP/2 gains nothing for short calls and grew in memory for others who tried it.
    allowH2: false,
    pipelining: 1,
    // Each watch holds one connection; a storm of reverts shares the rest.
    connections: 64,
    // The API server closes idle connections after 90 s; ours must be the first to let go.
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 60_000,
    headersTimeout: DEFAULT_TIMEOUT_MS,
    bodyTimeout: DEFAULT_TIMEOUT_MS,
    connect: {
      timeout: 5_000,
      ...(origin.startsWith('https:') ? { ...tls, rejectUnauthorized: true } : {}),
    },
  });
}

function sameServer(a: Credentials, b: Credentials): boolean {
  return a.origin === b.origin && JSON.stringify(a.tls) === JSON.stringify(b.tls);
}

function selected({ namespace }: Selection): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

function dryRun(options: WriteOptions): Query {
  return options.dryRun === true ? { dryRun: 'All' } : {};
}

function queryString(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) {
      parameters.set(name, String(value));
    }
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

async function readText(body: Answer['body'], request: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) {
      throw malformed(request, 'the answer is not made of bytes', undefined);
    }
    size += chunk.length;
    if (size > LARGEST_ANSWER_BYTES) {
      throw malformed(
        request,
        `the answer is larger than ${LARGEST_ANSWER_BYTES} bytes`,
        undefined,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function malformed(request: string, message: string, source: unknown): ApiError {
  return new ApiError({ kind: 'Malformed', request, message, source });
}

interface Ending {
  readonly cancelled: boolean;
  readonly timedOut: boolean;
}

function asApiError(error: unknown, request: string, ending: Ending): ApiError {
  return error instanceof ApiError
    ? error
    : new ApiError({ ...transportFailure(error, ending), request, source: error });
}

function transportFailure(
  error: unknown,
  { cancelled, timedOut }: Ending,
): Pick<ApiFailure & { kind: 'Cancelled' | 'Timeout' | 'Network' }, 'kind' | 'message'> {
  if (cancelled) {
    return { kind: 'Cancelled', message: 'the caller ended the call' };
  }
  const timeout =
    timedOut ||
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError;
  return timeout
    ? { kind: 'Timeout', message: 'no complete answer within the time limit' }
    : { kind: 'Network', message: error instanceof Error ? error.message : String(error) };
}
