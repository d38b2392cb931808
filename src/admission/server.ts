/** The HTTPS server of the webhooks: patient with the API server, bounded towards everybody else. */
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../kube';
import { listen, portOf } from '../observability';
import type { ListenAddress, Logger } from '../observability';
import type { ServingCertificate } from '../certificates';

export interface AdmissionServerOptions {
  readonly handle: RequestListener;
  readonly address: ListenAddress;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Longer than the 90 s after which the API server itself closes an idle connection (IdleConnTimeout
 * of apimachinery's util/net): a connection that we close just when a review is sent on it loses the
 * review, since a POST is not sent again, and so silently loses a boost.
 */
const IDLE_TIMEOUT_MS = 95_000;

/**
 * Longer still: Go opens connections in advance and keeps them unused, and for Node the time to the
 * first headers begins with the connection.
 */
const HEADERS_TIMEOUT_MS = 100_000;

/** From the first byte to the last; Node wants it no shorter. The body has its own, shorter time. */
const REQUEST_TIMEOUT_MS = HEADERS_TIMEOUT_MS;

/** The API server gives up on a whole call, handshake included, after 30 s at most. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * An API server works on 600 requests at one moment (--max-requests-inflight and
 * --max-mutating-requests-inflight: 400 + 200) with one connection each: room for three of them. An
 * idle connection takes about 50 kB.
 */
const MAX_CONNECTIONS = 2_048;

/** A handshake on our own machine fails for want of file descriptors or the like. */
const GREET_AGAIN_MS = 1_000;

/** After the drain time, for what is still in flight: as long as the body of a review may take. */
const FINISH_TIMEOUT_MS = 10_000;

/** Starts listening; every handshake fails until the server has a certificate. */
export async function startAdmissionServer(
  options: AdmissionServerOptions,
): Promise<AdmissionServer> {
  const server = new AdmissionServer(options);
  await server.start();
  return server;
}

export class AdmissionServer {
  readonly #options: AdmissionServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  readonly #inFlight = new Set<ServerResponse>();
  #state: 'WithoutCertificate' | 'Starting' | 'Serving' | 'Draining' = 'WithoutCertificate';
  #whenIdle: () => void = () => undefined;

  constructor(options: AdmissionServerOptions) {
    this.#options = options;
    this.#server = createServer({
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      keepAlive: true,
      noDelay: true,
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('request', (request, response) => {
      this.#track(response);
      options.handle(request, response);
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#report();
  }

  get port(): number {
    return portOf(this.#server);
  }

  /** Undefined while reviews are answered; else why not. */
  problem(): string | undefined {
    switch (this.#state) {
      case 'WithoutCertificate':
        return 'no certificate yet';
      case 'Starting':
        return 'no handshake yet';
      case 'Draining':
        return 'shutting down';
      case 'Serving':
        return this.#server.listening ? undefined : 'not listening';
    }
  }

  /** Rejects where the address cannot be listened on. */
  async start(): Promise<void> {
    await listen(this.#server, this.#options.address);
  }

  /**
   * New connections get it; those that are open keep what they have. After the first one a handshake
   * with ourselves proves that reviews can come.
   *
   * @throws where OpenSSL does not take it; what was served before is served on
   */
  replaceCertificate(certificate: ServingCertificate): void {
    this.#server.setSecureContext(secureContext(certificate));
    if (this.#state !== 'WithoutCertificate') return;
    this.#state = 'Starting';
    void this.#prove();
  }

  async #prove(): Promise<void> {
    const { address, clock, logger } = this.#options;
    while (this.#state === 'Starting') {
      try {
        await greet({ host: address.host, port: this.port });
        this.#becomeReady();
      } catch (error) {
        logger.error({ error }, 'no handshake with ourselves, trying again');
        await new Promise<void>((resolve) => clock.setTimer(GREET_AGAIN_MS, resolve));
      }
    }
  }

  #becomeReady(): void {
    // Asked to stop meanwhile: then never Ready again.
    if (this.#state === 'Starting') this.#state = 'Serving';
  }

  /**
   * Shuts down without losing a review: not ready at once, every answer from now on ends its
   * connection, but reviews are taken for `ms` milliseconds more, since clients hear of the end
   * with a delay. Then finishes what is in flight.
   */
  async drain(ms: number): Promise<void> {
    const { clock } = this.#options;
    this.#state = 'Draining';
    for (const response of this.#inFlight) endConnectionAfter(response);
    await new Promise<void>((resolve) => clock.setTimer(ms, resolve));
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    if (this.#inFlight.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(FINISH_TIMEOUT_MS, resolve);
        this.#whenIdle = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.#end();
    await closed;
  }

  #track(response: ServerResponse): void {
    this.#inFlight.add(response);
    if (this.#state === 'Draining') endConnectionAfter(response);
    response.once('close', () => {
      this.#inFlight.delete(response);
      if (this.#inFlight.size === 0) this.#whenIdle();
    });
  }

  /** Also connections that Node counts as neither idle nor active, such as those in a handshake. */
  #end(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #report(): void {
    const { logger } = this.#options;
    // Such as no file descriptor left; without a listener it would end the process.
    this.#server.on('error', (error) => {
      logger.error({ error }, 'the webhook server had an error');
    });
    this.#server.on('drop', () => {
      logger.warn({ connections: MAX_CONNECTIONS }, 'a connection was refused: too many are open');
    });
    this.#server.on('tlsClientError', (error) => {
      // Only an alert comes from a client that knows TLS and has looked at our certificate.
      if ('code' in error && String(error.code).includes('ALERT')) {
        logger.warn(
          { error },
          'a client refused our certificate: caBundle of the webhooks must be the CA of it',
        );
      } else {
        logger.debug({ error }, 'a handshake failed');
      }
    });
  }
}

/** Given whole at every change: Node forgets what a new context does not name. */
function secureContext({ certificate, key }: ServingCertificate): SecureContextOptions {
  return { cert: certificate, key, minVersion: 'TLSv1.2' };
}

function endConnectionAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

/** One handshake with ourselves; whom to trust is the client's business, and its CA unknown here. */
async function greet({ host = 'localhost', port }: ListenAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false }, () => {
      socket.end();
      resolve();
    });
    socket.once('error', reject);
  });
}
