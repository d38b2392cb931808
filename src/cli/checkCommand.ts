/** `check`: its arguments, what it prints, and its exit code. */
import { parseArgs } from 'node:util';
import { checkInstallation } from './checkInstallation';
import type { CheckResult } from './checkInstallation';
import { explain, withClient } from './commandRun';
import type { Connected, NothingToRun } from './commandRun';
import { controllerLease } from './controllerLease';
import { parseDuration } from './duration';
import { ProgressLine } from './progressLine';
import { parseCheckSettings } from './settings';
import type { CheckSettings, Environment } from './settings';
import { printable } from './terminal';
import type { Terminal } from './terminal';

export const CHECK_USAGE = `usage: startup-cpu-boost check [--timeout 1m]

Says whether an installation works: the API server reaches the webhooks, and a controller acts. It
changes nothing. Helm runs it for "helm test".

  --timeout TIME  waits so long for what is not well yet, such as 90s or 2m (default 1m)

Exit codes: 0 all is well, 1 something is not, 2 called or configured wrongly.
It reads KUBECONFIG, POD_NAMESPACE and WEBHOOK_CONFIGURATION; see docs/settings.md.
`;

export type CheckArguments = NothingToRun | { readonly kind: 'Check'; readonly timeoutMs: number };

export function parseCheckArguments(args: readonly string[]): CheckArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        timeout: { type: 'string', default: '1m' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { kind: 'Help' };
    const timeoutMs = parseDuration(values.timeout);
    if (timeoutMs !== undefined) return { kind: 'Check', timeoutMs };
    const problem = `--timeout ${values.timeout}: must be a time such as 90s, 2m or 1h30m`;
    return { kind: 'Wrong', problem };
  } catch (error) {
    return { kind: 'Wrong', problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Resolves with the exit code. */
export async function checkCommand(
  env: Environment,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const asked = parseCheckArguments(args);
  if (asked.kind !== 'Check') return explain(asked, CHECK_USAGE, terminal);
  const { timeoutMs } = asked;
  return withClient(parseCheckSettings(env), terminal, (connected) =>
    check(connected, timeoutMs, terminal),
  );
}

async function check(
  { client, clock, kubeConfig, settings }: Connected<CheckSettings>,
  timeoutMs: number,
  { out, err }: Terminal,
): Promise<number> {
  const line = new ProgressLine(err);
  const ending = new AbortController();
  const deadline = clock.setTimer(timeoutMs, () => {
    ending.abort();
  });
  const { namespace, name } = controllerLease({ kubeConfig, settings });
  try {
    const results = await checkInstallation({
      client,
      clock,
      namespace,
      lease: name,
      webhookConfiguration: settings.webhookConfiguration,
      onWait: (what) => {
        line.show(printable(what), clock.monotonic());
      },
      signal: ending.signal,
    });
    line.clear();
    out.write(results.map(describe).join(''));
    return results.every(({ problem }) => problem === undefined) ? 0 : 1;
  } finally {
    deadline.cancel();
  }
}

/** As the probes of the processes print it. */
function describe({ name, problem }: CheckResult): string {
  return problem === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${printable(problem)}\n`;
}
