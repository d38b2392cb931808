/** `revert-all`: its arguments, what it prints, and its exit code. */
import { parseArgs } from 'node:util';
import { RevertAll, undoRevertAll } from '../controller';
import type {
  RemainingPod,
  RevertAllOutcome,
  RevertAllProgress,
  WebhookState,
} from '../controller';
import { ApiError } from '../kube';
import type { Clock, KubeClient } from '../kube';
import { createLogger, createMetrics } from '../observability';
import { explain, withClient } from './commandRun';
import { parseDuration } from './duration';
import { ProgressLine } from './progressLine';
import { parseRevertAllSettings } from './settings';
import type { Environment, RevertAllSettings } from './settings';
import { printable } from './terminal';
import type { Terminal } from './terminal';

export const REVERT_ALL_USAGE = `usage: startup-cpu-boost revert-all [--keep-boosting] [--timeout 10m]
       startup-cpu-boost revert-all --undo

Gives every boosted pod of the cluster its own CPU back: before an uninstall, or in an emergency.
First it stops the mutating webhook (and with it every raise by a running controller), then it waits
a few seconds for pods that are being created, then it reverts until no boosted pod is left.

  --keep-boosting  leaves the webhook as it is: pods that are created meanwhile are boosted on
  --timeout TIME   gives up after this time, such as 90s, 10m or 1h (default 10m)
  --undo           lets a stopped webhook boost again, and reverts nothing

Exit codes: 0 no boosted pod is left, 1 some are left and listed, or a webhook that WEBHOOK_CONFIGURATION
does not name boosts on, 2 called or configured wrongly.
It may be run at any time and again. Settings are environment variables: KUBECONFIG,
WEBHOOK_CONFIGURATION and others; see docs/settings.md.
`;

export type RevertAllArguments =
  | { readonly kind: 'Help' }
  | { readonly kind: 'Undo' }
  | { readonly kind: 'Revert'; readonly boosting: 'Stop' | 'Keep'; readonly timeoutMs: number }
  | { readonly kind: 'Wrong'; readonly problem: string };

const DEFAULT_TIMEOUT = '10m';

/** Pods that are listed by name; a page of a terminal. */
const MAX_LISTED_PODS = 50;

/** How often a terminal shows how far the work is. */
const SHOW_EVERY_MS = 200;

export function parseRevertAllArguments(args: readonly string[]): RevertAllArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        'keep-boosting': { type: 'boolean', default: false },
        timeout: { type: 'string', default: DEFAULT_TIMEOUT },
        undo: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { kind: 'Help' };
    if (values.undo) {
      const isAlone = args.length === 1;
      return isAlone ? { kind: 'Undo' } : { kind: 'Wrong', problem: '--undo stands alone' };
    }
    const timeoutMs = parseDuration(values.timeout);
    if (timeoutMs === undefined) {
      const problem = `--timeout ${values.timeout}: must be a time such as 90s, 10m or 1h30m`;
      return { kind: 'Wrong', problem };
    }
    return { kind: 'Revert', boosting: values['keep-boosting'] ? 'Keep' : 'Stop', timeoutMs };
  } catch (error) {
    return { kind: 'Wrong', problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Resolves with the exit code. */
export async function revertAllCommand(
  env: Environment,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const asked = parseRevertAllArguments(args);
  if (asked.kind === 'Help' || asked.kind === 'Wrong') {
    return explain(asked, REVERT_ALL_USAGE, terminal);
  }
  // What is to be seen is printed here; the log is for those who ask for it.
  const parsed = parseRevertAllSettings({
    ...env,
    ZAP_LOG_LEVEL: (env.ZAP_LOG_LEVEL ?? '') === '' ? 'silent' : env.ZAP_LOG_LEVEL,
  });
  return withClient(parsed, terminal, ({ client, clock, settings }) =>
    asked.kind === 'Undo'
      ? undo(client, settings, terminal)
      : revert({ client, clock, settings, terminal, ...asked }),
  );
}

type Absent = Extract<WebhookState, { kind: 'Absent' }>;

interface Run {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly settings: RevertAllSettings;
  readonly terminal: Terminal;
  readonly boosting: 'Stop' | 'Keep';
  readonly timeoutMs: number;
}

async function revert(run: Run): Promise<number> {
  const { clock, settings, terminal, timeoutMs } = run;
  const ending = new AbortController();
  const end = (): void => {
    ending.abort();
  };
  // once: a second signal meets Node's default and ends the process.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, end);
  const deadline = clock.setTimer(timeoutMs, end);
  const all = new RevertAll({
    ...run,
    logger: createLogger(settings.logLevel, { process: 'revert-all' }),
    metrics: createMetrics(),
    random: Math.random,
    signal: ending.signal,
  });
  const line = new ProgressLine(terminal.err);
  const show = (): void => {
    line.show(describeProgress(all.progress, settings), clock.monotonic());
    timer = clock.setTimer(SHOW_EVERY_MS, show);
  };
  let timer = clock.setTimer(0, show);
  try {
    const outcome = await all.run();
    line.clear();
    return reportOutcome(outcome, settings, terminal);
  } finally {
    timer.cancel();
    deadline.cancel();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, end);
  }
}

async function undo(
  client: KubeClient,
  { webhookConfiguration }: RevertAllSettings,
  { out, err }: Terminal,
): Promise<number> {
  const what = `MutatingWebhookConfiguration ${webhookConfiguration}`;
  try {
    switch (await undoRevertAll(client, webhookConfiguration)) {
      case 'Undone':
        out.write(`${what}: its webhook boosts new pods again\n`);
        return 0;
      case 'NothingToUndo':
        out.write(`${what}: its webhook was not stopped\n`);
        return 0;
      case 'Absent':
        err.write(`${what}: not found; WEBHOOK_CONFIGURATION sets another name\n`);
        return 1;
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    err.write(`${what}: ${printable(error.message)}\n`);
    return 1;
  }
}

function describeProgress(progress: RevertAllProgress, settings: RevertAllSettings): string {
  const { phase, found, left, stuck, problem } = progress;
  const trouble = problem === undefined ? '' : ` (trying again: ${printable(problem)})`;
  switch (phase) {
    case 'Stopping':
      return `stopping the webhook of ${settings.webhookConfiguration}${trouble}`;
    case 'Settling':
      return 'webhook stopped; waiting for pods that are being created';
    case 'Reverting': {
      const stuckText = stuck === 0 ? '' : `, ${stuck} of them stuck`;
      return `reverting: ${found - left} of ${found} pods done, ${left} left${stuckText}${trouble}`;
    }
  }
}

function reportOutcome(
  { kind, webhook, found, remaining, problem }: RevertAllOutcome,
  settings: RevertAllSettings,
  { out, err }: Terminal,
): number {
  const about = describeWebhook(webhook, settings);
  if (about !== '') err.write(`${about}\n`);
  if (kind === 'Failed') err.write(`the API server does not let us: ${printable(problem ?? '')}\n`);
  if (kind === 'Done') {
    out.write(`${found} boosted pods found, all have their own CPU again or are gone\n`);
    return boostsOn(webhook) ? 1 : 0;
  }
  const ended = kind === 'Ended' ? 'ended before everything was done: ' : '';
  out.write(`${ended}${found} boosted pods found, ${remaining.length} left\n`);
  for (const pod of remaining.slice(0, MAX_LISTED_PODS)) out.write(`  ${describePod(pod)}\n`);
  const more = remaining.length - MAX_LISTED_PODS;
  if (more > 0) out.write(`  and ${more} more\n`);
  return 1;
}

/** Another name than the one that was looked for: "no boosted pod is left" would not last. */
function boostsOn(webhook: WebhookState | undefined): webhook is Absent {
  return webhook?.kind === 'Absent' && webhook.others.length > 0;
}

function describeWebhook(
  webhook: WebhookState | undefined,
  { webhookConfiguration }: RevertAllSettings,
): string {
  const configuration = `MutatingWebhookConfiguration ${webhookConfiguration}`;
  switch (webhook?.kind) {
    case 'Absent': {
      const absent = `${configuration}: not found, or without our webhook, so nothing was stopped`;
      return boostsOn(webhook)
        ? `${absent}: pods are boosted on by ${webhook.others.map(printable).join(', ')}; WEBHOOK_CONFIGURATION has to name it`
        : absent;
    }
    case 'Stopped':
    case 'WasStopped':
      return `${configuration}: stopped, new pods are not boosted; "revert-all --undo" starts it again`;
    case 'Kept':
    case undefined:
      return '';
  }
}

function describePod({ namespace, name, why }: RemainingPod): string {
  return `${namespace}/${name}: ${printable(why)}`;
}
