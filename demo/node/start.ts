/** One start of the program, as it was measured, and what it says about the boost. */

/** From `at` on, in milliseconds since the Deployment was created, the cgroup had this quota. */
export interface QuotaStep {
  readonly at: number;
  /** Infinite where there is no limit. */
  readonly millicores: number;
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
  | { readonly kind: 'NotGivenBack'; readonly millicores: number };

/** What has become of the boost, by the quota that the manifest asks for. */
export function giveBackOf({ quota, readyAt }: Start, original: number): GiveBack {
  const last = quota.at(-1);
  if (last === undefined || !quota.some(({ millicores }) => millicores > original)) {
    return { kind: 'NotRaised' };
  }
  if (last.millicores !== original) return { kind: 'NotGivenBack', millicores: last.millicores };
  return { kind: 'GivenBack', afterReadyMs: last.at - readyAt };
}

/** The quota at that moment; undefined before the first look and after the last one. */
export function quotaAt({ quota, endedAt }: Start, at: number): number | undefined {
  if (at > endedAt) return undefined;
  return quota.filter((step) => step.at <= at).at(-1)?.millicores;
}

/** Of those that are limited, and `least` at least: what a picture has to show. */
export function highestQuota(starts: readonly Start[], least: number): number {
  const quotas = starts.flatMap(({ quota }) => quota.map(({ millicores }) => millicores));
  return Math.max(least, ...quotas.filter(Number.isFinite));
}

export function secondsText(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}

export function quotaText(millicores: number): string {
  return Number.isFinite(millicores) ? `${Math.round(millicores)}m` : 'no limit';
}
