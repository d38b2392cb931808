/** Plain HTTP for probes and metrics: /livez, /readyz (with ?verbose) and /metrics. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import type { Metrics } from './metrics';

export interface HealthCheck {
  readonly name: string;
  /** Undefined where all is well, else what is not. */
  readonly problem: () => string | undefined;
}

export interface ListenAddress {
  /** Undefined listens on every address. */
  readonly host: string | undefined;
  readonly port: number;
}

export interface RunningServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface HealthRoutes {
  readonly live: readonly HealthCheck[];
  readonly ready: readonly HealthCheck[];
}

export function healthApp(checks: HealthRoutes): Koa {
  const router = new Router();
  answerChecks(router, ['/livez', '/healthz'], checks.live);
  answerChecks(router, ['/readyz'], checks.ready);
  const app = new Koa();
  app.use(router.routes());
  return app;
}

export function metricsApp(metrics: Metrics): Koa {
  const router = new Router();
  router.get('/metrics', async (context) => {
    context.type = metrics.contentType;
    context.body = await metrics.text();
  });
  const app = new Koa();
  app.use(router.routes());
  return app;
}

/** Starts listening; rejects with the system's own error (EADDRINUSE and so on). */
export async function startHttpServer(app: Koa, address: ListenAddress): Promise<RunningServer> {
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  await listen(server, address);
  return {
    port: portOf(server),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves once the server listens. */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

export function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

/** As the API server's own probes: `ok`, or 500; with `?verbose` or on failure one line a check. */
function answerChecks(router: Router, paths: readonly string[], checks: readonly HealthCheck[]) {
  router.get([...paths], (context) => {
    const results = checks.map(({ name, problem }) => ({ name, problem: problem() }));
    const isWell = results.every((result) => result.problem === undefined);
    context.status = isWell ? 200 : 500;
    context.type = 'text/plain';
    const lines = results.map(({ name, problem }) =>
      problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
    );
    const isVerbose = !isWell || 'verbose' in context.query;
    context.body = isVerbose ? [...lines, isWell ? 'ok' : 'failed', ''].join('\n') : 'ok';
  });
}
