/** Stands between a client and the real API server and fails, on command, as both and their network do. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request as send } from 'node:https';
import type { RequestOptions, Server } from 'node:https';
import type { Socket } from 'node:net';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadKubeConfig } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { aCertificate } from './certificates';

/** What a request is for, in RBAC's words. */
export interface ApiRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';
  /** '' where the path names none, as in discovery. */
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
}

/** Requests that have all of this; what is left out may be anything. */
export interface RequestMatch extends Partial<ApiRequest> {
  /** The bearer token that they bring. */
  readonly token?: string;
}

const REASONS = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
} as const;

export type Fault =
  /** A `Status` in place of the API server's answer, which never sees the request. */
  | {
      readonly kind: 'Answer';
      readonly status: keyof typeof REASONS;
      readonly retryAfterSeconds?: number;
    }
  /** A watch that opens and then says, in an ERROR event, that its version is too old. */
  | { readonly kind: 'ExpiredEvent' }
  /** RST; the API server never sees the request. */
  | { readonly kind: 'Reset' }
  /** The API server does what was asked; RST once its whole answer is there. */
  | { readonly kind: 'LoseAnswer' }
  /** The API server sees the request at `release`, even if nobody waits for the answer any more. */
  | { readonly kind: 'HoldRequest' }
  /** The API server does what was asked; its whole answer goes on at `release`. */
  | { readonly kind: 'HoldAnswer' };

export interface FaultRule {
  readonly match: RequestMatch;
  readonly fault: Fault;
  /** How many requests it strikes; all of them unless given. */
  readonly times?: number;
}

export interface Injection {
  /** Requests that it has struck. */
  readonly hits: number;
  /** Lets go of what it holds; what it strikes later is not held. */
  release(): void;
  /** Strikes no more. */
  remove(): void;
}

interface Upstream {
  readonly url: URL;
  readonly agent: Agent;
  /** What proves that we are the kubeconfig's user, for requests that bring no token. */
  readonly credentials: Pick<RequestOptions, 'cert' | 'key'>;
}

interface Exchange {
  readonly asked: ApiRequest;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

interface OpenWatch {
  readonly asked: ApiRequest;
  readonly response: ServerResponse;
  isStalled: boolean;
}

export class FaultProxy {
  readonly port: number;
  readonly #ca: string;
  readonly #server: Server;
  readonly #upstream: Upstream;
  readonly #kubeconfigPath: string;
  /** The TCP sockets below TLS, which alone can be reset; by the client's port. */
  readonly #sockets = new Map<number | undefined, Socket>();
  readonly #watches = new Set<OpenWatch>();
  readonly #injected = new Set<Injected>();

  private constructor(server: Server, ca: string, upstream: Upstream, kubeconfigPath: string) {
    this.port = portOf(server);
    this.#ca = ca;
    this.#server = server;
    this.#upstream = upstream;
    this.#kubeconfigPath = kubeconfigPath;
  }

  /** Before the API server of a kubeconfig, on a port of 127.0.0.1 and with a certificate of its own. */
  static async start(kubeconfigPath: string): Promise<FaultProxy> {
    const { ca, certificate, key } = await aCertificate();
    const server = createServer({ cert: certificate, key });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new FaultProxy(server, ca, await upstreamOf(kubeconfigPath), kubeconfigPath);
    server.on('connection', (socket: Socket) => {
      proxy.#keep(socket);
    });
    server.on('request', (incoming: IncomingMessage, response: ServerResponse) => {
      proxy.#handle(incoming, response).catch(() => {
        // The API server is away or broke off, or the client did: neither gets a made-up answer.
        proxy.#reset(response);
      });
    });
    return proxy;
  }

  /** The kubeconfig of the API server behind, with the proxy's address and CA, for a user of its own. */
  async writeKubeconfig(path: string, user?: JsonObject): Promise<void> {
    const config = kubeconfigSchema.parse(parse(await readFile(this.#kubeconfigPath, 'utf8')));
    const cluster = {
      server: `https://127.0.0.1:${this.port}`,
      'certificate-authority-data': Buffer.from(this.#ca).toString('base64'),
    };
    const [{ name: clusterName }] = config.clusters;
    const [users] = config.users;
    const changed = {
      ...config,
      clusters: [{ name: clusterName, cluster }],
      users: [{ ...users, user: user ?? users.user }],
    };
    await writeFile(path, JSON.stringify(changed));
  }

  /** The rules that were injected first strike first. */
  inject(rule: FaultRule): Injection {
    const injected = new Injected(rule);
    this.#injected.add(injected);
    return {
      get hits() {
        return injected.hits;
      },
      release: () => {
        injected.release();
      },
      remove: () => {
        this.#injected.delete(injected);
      },
    };
  }

  /** Watches that bring events. */
  openWatches(match: RequestMatch = {}): number {
    return this.#matching(match).length;
  }

  /** RST for the watches that are open; returns how many. */
  cutWatches(match: RequestMatch = {}): number {
    return this.#breakOff(match, ({ response }) => {
      this.#reset(response);
    });
  }

  /** The watches that are open stay open and never bring another byte; returns how many. */
  stallWatches(match: RequestMatch = {}): number {
    return this.#breakOff(match, (watch) => {
      watch.isStalled = true;
    });
  }

  /** The watches that are open end with an ERROR event, their version is too old; returns how many. */
  expireWatches(match: RequestMatch = {}): number {
    return this.#breakOff(match, ({ response }) => {
      response.end(EXPIRED_EVENT);
    });
  }

  /** Resets all connections and refuses new ones until `comeBack`. */
  async goDown(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets.values()) socket.resetAndDestroy();
    await closed;
  }

  async comeBack(): Promise<void> {
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    for (const injected of this.#injected) injected.release();
    if (this.#server.listening) await this.goDown();
    this.#upstream.agent.destroy();
  }

  #breakOff(match: RequestMatch, end: (watch: OpenWatch) => void): number {
    const broken = this.#matching(match);
    for (const watch of broken) {
      this.#watches.delete(watch);
      end(watch);
    }
    return broken.length;
  }

  #matching(match: RequestMatch): readonly OpenWatch[] {
    return [...this.#watches].filter(({ asked }) => matches(asked, undefined, match));
  }

  #keep(socket: Socket): void {
    const { remotePort } = socket;
    this.#sockets.set(remotePort, socket);
    socket.on('close', () => {
      this.#sockets.delete(remotePort);
    });
  }

  #reset(response: ServerResponse): void {
    this.#sockets.get(response.req.socket.remotePort)?.resetAndDestroy();
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = parseRequest(incoming);
    const exchange = { asked, incoming, response, body: await readAll(incoming) };
    const injected = this.#struck(asked, tokenOf(incoming));
    if (injected === undefined) return this.#forward(exchange);
    const { fault } = injected.rule;
    switch (fault.kind) {
      case 'Answer':
        answer(response, fault);
        return;
      case 'ExpiredEvent':
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(EXPIRED_EVENT);
        return;
      case 'Reset':
        this.#reset(response);
        return;
      case 'LoseAnswer':
        await readAll(await this.#ask(exchange));
        this.#reset(response);
        return;
      case 'HoldRequest':
        await injected.released;
        await passOn(await this.#ask(exchange), response);
        return;
      case 'HoldAnswer': {
        const held = await this.#ask(exchange);
        await injected.released;
        await passOn(held, response);
        return;
      }
    }
  }

  #struck(asked: ApiRequest, token: string | undefined): Injected | undefined {
    for (const injected of this.#injected) {
      if (injected.strikes(asked, token)) return injected;
    }
    return undefined;
  }

  async #forward(exchange: Exchange): Promise<void> {
    const { asked, response } = exchange;
    const stream = await this.#ask(exchange, 'UntilClientLeaves');
    if (asked.verb !== 'watch') return passOn(stream, response);
    const watch: OpenWatch = { asked, response, isStalled: false };
    this.#watches.add(watch);
    response.once('close', () => {
      this.#watches.delete(watch);
    });
    writeHead(stream, response);
    response.flushHeaders();
    for await (const chunk of stream) {
      if (!watch.isStalled && !response.writableEnded) response.write(chunk);
    }
    if (!watch.isStalled) response.end();
  }

  /** Sends the request on; a write that was held or whose answer is lost happens all the same. */
  async #ask(
    { incoming, response, body }: Exchange,
    lives: 'UntilClientLeaves' | 'UntilAnswered' = 'UntilAnswered',
  ): Promise<IncomingMessage> {
    const { url, agent, credentials } = this.#upstream;
    return new Promise((resolve, reject) => {
      const outgoing = send({
        ...(tokenOf(incoming) === undefined ? credentials : {}),
        agent,
        host: url.hostname,
        port: url.port,
        path: incoming.url,
        method: incoming.method,
        headers: { ...endToEnd(incoming.headers), host: url.host, 'content-length': body.length },
      });
      outgoing.on('response', resolve);
      outgoing.on('error', reject);
      if (lives === 'UntilClientLeaves') {
        response.once('close', () => {
          outgoing.destroy();
        });
      }
      outgoing.end(body);
    });
  }
}

/** A rule at work. */
class Injected {
  readonly rule: FaultRule;
  readonly released: Promise<void>;
  hits = 0;
  #release: () => void = () => undefined;

  constructor(rule: FaultRule) {
    this.rule = rule;
    this.released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  release(): void {
    this.#release();
  }

  /** Counts the request if it is struck. */
  strikes(asked: ApiRequest, token: string | undefined): boolean {
    const { match, times = Infinity } = this.rule;
    if (this.hits >= times || !matches(asked, token, match)) return false;
    this.hits += 1;
    return true;
  }
}

function matches(
  asked: ApiRequest,
  token: string | undefined,
  { verb = asked.verb, resource = asked.resource, ...rest }: RequestMatch,
): boolean {
  const { subresource = asked.subresource, token: wanted = token } = rest;
  return (
    asked.verb === verb &&
    asked.resource === resource &&
    asked.subresource === subresource &&
    token === wanted
  );
}

const WRITES: Readonly<Record<string, ApiRequest['verb']>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris */
function parseRequest({ method = 'GET', url = '/' }: IncomingMessage): ApiRequest {
  const { pathname, searchParams } = new URL(url, 'https://localhost');
  const [root, ...path] = pathname.split('/').slice(1);
  const inGroup = path.slice(root === 'api' ? 1 : 2);
  const isNamespaced = inGroup[0] === 'namespaces' && inGroup.length > 2;
  const [resource = '', name, subresource = ''] = isNamespaced ? inGroup.slice(2) : inGroup;
  const isWatch = searchParams.get('watch') === 'true';
  const read = name === undefined && resource !== '' ? (isWatch ? 'watch' : 'list') : 'get';
  return { verb: WRITES[method] ?? read, resource, subresource };
}

function tokenOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
}

const EXPIRED_EVENT = `${JSON.stringify({ type: 'ERROR', object: status(410) })}\n`;

function status(code: keyof typeof REASONS): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Status',
    status: 'Failure',
    code,
    reason: REASONS[code],
    message: `the proxy of the test answers ${code}`,
  };
}

function answer(
  response: ServerResponse,
  { status: code, retryAfterSeconds }: Extract<Fault, { readonly kind: 'Answer' }>,
): void {
  response.writeHead(code, {
    'content-type': 'application/json',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
  });
  response.end(JSON.stringify(status(code)));
}

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length']);

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}

function writeHead(received: IncomingMessage, response: ServerResponse): void {
  response.writeHead(received.statusCode ?? 502, endToEnd(received.headers));
}

async function passOn(received: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readAll(received);
  writeHead(received, response);
  response.end(body);
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) {
    if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

async function upstreamOf(kubeconfigPath: string): Promise<Upstream> {
  const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const { ca, cert, key } = options;
  return {
    url: new URL(kubeConfig.getCurrentCluster()?.server ?? ''),
    agent: new Agent({ keepAlive: true, ca }),
    credentials: { cert, key },
  };
}

const kubeconfigSchema = z.looseObject({
  clusters: z.tuple([z.looseObject({ name: z.string() })]),
  users: z.tuple([z.looseObject({ user: z.looseObject({}) })]),
});
