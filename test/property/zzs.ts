export const SETT = { maximumBoostMs: 1, unschedulableGraceMs: 1, boostDeletedGraceMs: 1, confirmTimeoutMs: 1, limitRangeDefaults: 'Avoid' as const };
