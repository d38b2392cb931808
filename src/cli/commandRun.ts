/** What every command that runs to its end has in common: how it is refused, and its way to the API server. */
import { createKubeClient, systemClock } from '../kube';
import type { Clock, KubeClient, KubeConfig } from '../kube';
import { tryLoadKubeConfig } from './processLife';
import type { ParsedSettings } from './settings';
import type { Terminal } from './terminal';

/** Arguments with which nothing is to be done. */
export type NothingToRun =
  { readonly kind: 'Help' } | { readonly kind: 'Wrong'; readonly problem: string };

export interface Connected<Settings> {
  readonly settings: Settings;
  readonly kubeConfig: KubeConfig;
  readonly client: KubeClient;
  readonly clock: Clock;
}

/** The exit code after the usage, or after the problem and the usage. */
export function explain(asked: NothingToRun, usage: string, { out, err }: Terminal): number {
  switch (asked.kind) {
    case 'Help':
      out.write(usage);
      return 0;
    case 'Wrong':
      err.write(`${asked.problem}\n\n${usage}`);
      return 2;
  }
}

/** Resolves with the exit code of the work; with 2 where settings or kubeconfig are wrong. */
export async function withClient<Settings extends { readonly kubeconfig: string | undefined }>(
  parsed: ParsedSettings<Settings>,
  { err }: Terminal,
  work: (connected: Connected<Settings>) => Promise<number>,
): Promise<number> {
  if (parsed.kind === 'Invalid') {
    for (const problem of parsed.problems) err.write(`${problem}\n`);
    return 2;
  }
  const { settings } = parsed;
  const kubeConfig = tryLoadKubeConfig(settings.kubeconfig);
  if (kubeConfig.kind === 'Failed') {
    err.write(`${kubeConfig.problem}\n`);
    return 2;
  }
  const clock = systemClock();
  const client = createKubeClient(kubeConfig.value, { clock });
  try {
    return await work({ settings, kubeConfig: kubeConfig.value, client, clock });
  } finally {
    await client.close();
  }
}
