/** The life of a process: settings, probes and metrics, work, and an orderly end on a signal. */
import { delimiter } from 'node:path';
import { ServerClock, createKubeClient, loadKubeConfig, systemClock } from '../kube';
import type { Clock, KubeClient, KubeConfig } from '../kube';
import {
  createLogger,
  createMetrics,
  healthApp,
  metricsApp,
  startHttpServer,
} from '../observability';
import type { HealthRoutes, ListenAddress, Logger, Metrics, RunningServer } from '../observability';
import type Koa from 'koa';
import type { CommonSettings, ParsedSettings } from './settings';

export interface ProcessContext<Settings> {
  readonly settings: Settings;
  readonly kubeConfig: KubeConfig;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** What a command has started. */
export interface RunningProcess {
  readonly checks: HealthRoutes;
  /** Finishes what is in flight, then resolves. */
  stop(): Promise<void>;
}

/**
 * Runs a process until SIGTERM or SIGINT, and resolves with its exit code. A second signal ends it
 * at once. Once it has started nothing else ends it: an error that nobody caught is logged, since a
 * process that goes on judging pods does less harm than one that restarts in a loop.
 */
export async function runUntilSignal<Settings extends CommonSettings>(
  name: string,
  parsed: ParsedSettings<Settings>,
  start: (context: ProcessContext<Settings>) => Promise<RunningProcess>,
): Promise<number> {
  if (parsed.kind === 'Invalid') return report(2, parsed.problems);
  const { settings, warnings } = parsed;
  const kubeConfig = tryLoadKubeConfig(settings.kubeconfig);
  if (kubeConfig.kind === 'Failed') return report(2, [kubeConfig.problem]);
  const clock = new ServerClock(systemClock());
  const logger = createLogger(settings.logLevel, { process: name });
  for (const warning of warnings) logger.warn({}, warning);
  logUncaught(logger);
  const client = createKubeClient(kubeConfig.value, {
    clock,
    onServerDate: (date, tookMs) => {
      clock.observe(date, tookMs);
    },
  });
  const metrics = createMetrics();
  const context = { settings, kubeConfig: kubeConfig.value, client, clock, logger, metrics };
  const signal = nextSignal();
  const started = await startAll(context, start);
  if (started.kind === 'Failed') return report(1, [`${name} cannot start: ${started.problem}`]);
  const { running, servers } = started;
  logger.info({ ports: servers.map((server) => server?.port) }, 'started');
  logger.info({ signal: await signal }, 'stopping');
  await running.stop();
  await client.close();
  for (const server of servers) await server?.close();
  logger.info({}, 'stopped');
  return 0;
}

type Started =
  | {
      readonly kind: 'Started';
      readonly running: RunningProcess;
      readonly servers: readonly (RunningServer | undefined)[];
    }
  | { readonly kind: 'Failed'; readonly problem: string };

/** What was started before the failure goes on: the caller is to end the process. */
async function startAll<Settings extends CommonSettings>(
  context: ProcessContext<Settings>,
  start: (context: ProcessContext<Settings>) => Promise<RunningProcess>,
): Promise<Started> {
  const { settings, metrics } = context;
  try {
    const running = await start(context);
    const servers = [
      await serve('HEALTH_PROBE_BIND_ADDR', settings.healthAddress, healthApp(running.checks)),
      await serve('METRICS_PROBE_BIND_ADDR', settings.metricsAddress, metricsApp(metrics)),
    ];
    return { kind: 'Started', running, servers };
  } catch (error) {
    return { kind: 'Failed', problem: messageOf(error) };
  }
}

/** Rejects with the name of the setting, since the system's error tells the address alone. */
async function serve(
  variable: string,
  address: ListenAddress | undefined,
  app: Koa,
): Promise<RunningServer | undefined> {
  if (address === undefined) return undefined;
  try {
    return await startHttpServer(app, address);
  } catch (error) {
    throw new Error(`${variable}: ${messageOf(error)}`, { cause: error });
  }
}

export type Loaded =
  | { readonly kind: 'Loaded'; readonly value: KubeConfig }
  | { readonly kind: 'Failed'; readonly problem: string };

/** From one path, or from where the process runs; the problem names the variable. */
export function tryLoadKubeConfig(path: string | undefined): Loaded {
  try {
    // Several are read as kubectl reads them, which is the default.
    const isOne = path !== undefined && !path.includes(delimiter);
    const source = isOne ? { kind: 'File' as const, path } : { kind: 'Default' as const };
    return { kind: 'Loaded', value: loadKubeConfig(source) };
  } catch (error) {
    const what =
      path === undefined ? 'no KUBECONFIG, and no service account' : `KUBECONFIG="${path}"`;
    return { kind: 'Failed', problem: `${what}: ${messageOf(error)}` };
  }
}

function report(code: number, problems: readonly string[]): number {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  return code;
}

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    // once: a second signal meets Node's default and ends the process.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
}

function logUncaught(logger: Logger): void {
  process.on('uncaughtException', (error) => {
    logger.error({ error }, 'an error that nobody caught');
  });
  process.on('unhandledRejection', (error) => {
    logger.error({ error }, 'a rejection that nobody handled');
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
