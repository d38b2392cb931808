/** Calls of the suite itself, which go on over the faults that it causes. */
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../../src/kube';
import type { ApiFailure } from '../../../src/kube';

const RETRY_MS = 200;
/** Longer than any fault of the plan lasts; a call that fails for so long is a finding. */
const WITHIN_MS = 60_000;

/** Until the API server has answered with what the call expects. */
export async function persist<T>(call: () => Promise<T>): Promise<T> {
  const end = Date.now() + WITHIN_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isPassing(error) || Date.now() > end) throw error;
      await delay(RETRY_MS);
    }
  }
}

/** What the call returns, or undefined where it failed for this reason: done before, or gone. */
export async function unless<T>(
  kind: ApiFailure['kind'],
  call: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ApiError && error.failure.kind === kind) return undefined;
    throw error;
  }
}

/**
 * The API server is away, starting or busy, or the webhook that validates boosts is. One that has
 * just started knows the rights of its users a moment later.
 */
const PASSING: ReadonlySet<ApiFailure['kind']> = new Set([
  'Network',
  'Timeout',
  'Server',
  'Throttled',
  'Malformed',
  'Forbidden',
  'Unauthorized',
]);

function isPassing(error: unknown): boolean {
  return error instanceof ApiError && PASSING.has(error.failure.kind);
}
