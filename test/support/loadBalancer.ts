/** Plays the Service before the admission replicas: as kube-proxy spreads connections, as a kubelet probes. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A replica, as BoostProcess has it. */
export interface Backend {
  /** Where its connections go; the host is 127.0.0.1. */
  readonly webhookUrl: string;
  /** Its `/readyz` says whether new connections go there. */
  readonly healthUrl: string;
}

interface Member {
  readonly backend: Backend;
  readonly gone: AbortController;
  isReady: boolean;
  connections: number;
}

/** A kubelet waits a second or more; nothing here is gained by waiting as long. */
const PROBE_PERIOD_MS = 200;
/** The default of a probe. */
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Each connection goes to one of the backends that are ready, by chance, and stays with it, also
 * when it is not ready any more. With no backend ready a connection is refused. The end of a
 * backend's connection, orderly or not, is the end of the client's.
 */
export class LoadBalancer {
  readonly url: string;
  readonly #server: Server;
  readonly #pick: () => number;
  readonly #members = new Map<Backend, Member>();
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, pick: () => number) {
    const { port } = server.address() as AddressInfo;
    this.url = `https://127.0.0.1:${port}`;
    this.#server = server;
    this.#pick = pick;
    server.on('connection', (client) => {
      this.#pass(client);
    });
  }

  /** `pick` gives numbers in [0, 1). */
  static async start(pick: () => number = Math.random): Promise<LoadBalancer> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LoadBalancer(server, pick);
  }

  /** Gets connections as soon as it is ready. */
  add(backend: Backend): void {
    const member = { backend, gone: new AbortController(), isReady: false, connections: 0 };
    this.#members.set(backend, member);
    void probe(member);
  }

  /** Gets no new connection; those that it has stay. */
  remove(backend: Backend): void {
    this.#members.get(backend)?.gone.abort();
    this.#members.delete(backend);
  }

  /** Those that get new connections. */
  ready(): readonly Backend[] {
    return this.#readyMembers().map(({ backend }) => backend);
  }

  /** Open connections to a backend that has not been removed. */
  connectionsTo(backend: Backend): number {
    return this.#members.get(backend)?.connections ?? 0;
  }

  async stop(): Promise<void> {
    for (const { backend } of this.#members.values()) this.remove(backend);
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  #readyMembers(): readonly Member[] {
    return [...this.#members.values()].filter(({ isReady }) => isReady);
  }

  #pass(client: Socket): void {
    const ready = this.#readyMembers();
    const member = ready[Math.floor(this.#pick() * ready.length)];
    if (member === undefined) {
      client.resetAndDestroy();
      return;
    }
    const { hostname, port } = new URL(member.backend.webhookUrl);
    const server = connect(Number(port), hostname);
    member.connections += 1;
    server.once('close', () => {
      member.connections -= 1;
    });
    client.pipe(server).pipe(client);
    this.#couple(client, server);
    this.#couple(server, client);
  }

  #couple(socket: Socket, other: Socket): void {
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.on('error', () => {
      other.resetAndDestroy();
    });
    socket.on('close', () => {
      this.#sockets.delete(socket);
      other.destroy();
    });
  }
}

async function probe(member: Member): Promise<void> {
  const { backend, gone } = member;
  while (!gone.signal.aborted) {
    member.isReady = await answersReady(backend);
    await delay(PROBE_PERIOD_MS);
  }
}

async function answersReady({ healthUrl }: Backend): Promise<boolean> {
  try {
    const response = await fetch(`${healthUrl}/readyz`, {
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
