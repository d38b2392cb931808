/** Durations as people type them, and as Go prints them. */

const UNITS = { h: 3_600_000, m: 60_000, s: 1_000 } as const;

/** Milliseconds of `90s`, `10m` or `1h30m`; undefined where the text is none, or is nothing. */
export function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,4})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?$/.exec(text);
  if (match === null) return undefined;
  const [, hours, minutes, seconds] = match;
  const ms =
    Number(hours ?? 0) * UNITS.h + Number(minutes ?? 0) * UNITS.m + Number(seconds ?? 0) * UNITS.s;
  return ms > 0 ? ms : undefined;
}
