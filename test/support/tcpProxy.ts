/** Stands between a client and the API server, and cuts the line when a test says so. */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export class TcpProxy {
  readonly port: number;
  /** Connections taken so far. */
  connections = 0;
  #isDown = false;
  readonly #sockets: Set<Socket>;
  readonly #close: () => Promise<void>;

  private constructor(port: number, sockets: Set<Socket>, close: () => Promise<void>) {
    this.port = port;
    this.#sockets = sockets;
    this.#close = close;
  }

  /** Passes loopback connections on to a port of this machine. */
  static async start(target: number): Promise<TcpProxy> {
    const sockets = new Set<Socket>();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const proxy = new TcpProxy(port, sockets, () => {
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    });
    server.on('connection', (client) => {
      proxy.#pass(client, target);
    });
    return proxy;
  }

  /** Resets all connections, and new ones too until `mend`. */
  cut(): void {
    this.#isDown = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  mend(): void {
    this.#isDown = false;
  }

  /** Connections that are open stay open and never bring another byte; new ones work. */
  stall(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  stop(): Promise<void> {
    this.cut();
    return this.#close();
  }

  #pass(client: Socket, target: number): void {
    if (this.#isDown) {
      client.resetAndDestroy();
      return;
    }
    this.connections += 1;
    const server = connect(target, '127.0.0.1');
    client.pipe(server).pipe(client);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
