/** One start of the program, as it was measured, and what it says about the boost. */

/** From `at` on, in milliseconds since the Deployment was created, the cgroup had this quota. */
export interface QuotaStep {
  readonly at: number;
  /** Undefined: no limit. */
  readonly millicores: number | undefined;
}

export interface Start {
  readonly name: string;
  /** In milliseconds since the Deployment was created, as the two below. */
  readonly readyAt: number;
  /** When the last look at the cgroup was taken. */
  readonly endedAt: number;
  /** In the order of time; the first is the first look at the container's cgroup. */
  readonly quota: readonly QuotaStep[];
  readonly restarts: number;
}

export type GiveBack =
  /** Before Ready where `afterReadyMs` is negative. */
  | { readonly kind: 'GivenBack'; readonly afterReadyMs: number }
  | { readonly kind: 'NotRaised' }
  | { readonly kind: 'NotGivenBack'; readonly millicores: number | undefined };

/** What has become of the boost, by the quota that the manifest asks for. */
export function giveBackOf({ quota, readyAt }: Start, original: number): GiveBack {
  if (!quota.some((step) => isMore(step, original))) return { kind: 'NotRaised' };
  const last = quota.at(-1);
  if (last?.millicores !== original) return { kind: 'NotGivenBack', millicores: last?.millicores };
  return { kind: 'GivenBack', afterReadyMs: last.at - readyAt };
}

/** The quota at that moment; undefined before the first look and where there is no limit. */
export function quotaAt({ quota, endedAt }: Start, at: number): number | undefined {
  if (at > endedAt) return undefined;
  return quota.filter((step) => step.at <= at).at(-1)?.millicores;
}

export function highestQuota(starts: readonly Start[]): number {
  return Math.max(...starts.flatMap(({ quota }) => quota.map(({ millicores }) => millicores ?? 0)));
}

export function secondsText(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}

export function quotaText(millicores: number | undefined): string {
  return millicores === undefined ? 'no limit' : `${Math.round(millicores)}m`;
}

function isMore({ millicores }: QuotaStep, original: number): boolean {
  return millicores === undefined || millicores > original;
}
