/** Everything that can go wrong in an API call, as one union, and the one rule what to do next. */
import { isJsonObject, parseJsonObject } from './jsonObject';
import type { JsonObject } from './jsonObject';

/** One entry of `Status.details.causes`. */
export interface FailureCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

interface Common {
  /** What was asked: `PATCH pods/resize default/web-0`. */
  readonly request: string;
  readonly message: string;
  /** The `Status` body, the text of another body, or the error underneath. */
  readonly source: unknown;
}

interface Answered extends Common {
  readonly status: number;
  /** `Status.reason`, '' if there was none. */
  readonly reason: string;
}

/** The server may say when to come back, in milliseconds from the answer. */
interface MayRetryAfter {
  readonly retryAfterMs?: number;
}

export type ApiFailure =
  | (Answered & { readonly kind: 'Unauthorized' })
  | (Answered & { readonly kind: 'Forbidden'; readonly causes: readonly FailureCause[] })
  | (Answered & { readonly kind: 'NotFound' })
  | (Answered & { readonly kind: 'Conflict' })
  | (Answered & { readonly kind: 'AlreadyExists' })
  /** The resourceVersion or continue token is too old. */
  | (Answered & { readonly kind: 'Gone' })
  /** A JSON Patch did not apply: a `test` did not hold or a path was missing. */
  | (Answered & { readonly kind: 'TestFailed' })
  | (Answered & { readonly kind: 'Invalid'; readonly causes: readonly FailureCause[] })
  | (Answered & { readonly kind: 'Throttled' } & MayRetryAfter)
  | (Answered & { readonly kind: 'Server' } & MayRetryAfter)
  /** Any other 4xx: the request itself is wrong. */
  | (Answered & { readonly kind: 'BadRequest' })
  /** No answer: refused, reset, name not found, certificate not accepted. */
  | (Common & { readonly kind: 'Network' })
  | (Common & { readonly kind: 'Timeout' })
  /** The caller's signal ended the call. */
  | (Common & { readonly kind: 'Cancelled' })
  /** An answer that is not what the API sends, or is too large. */
  | (Common & { readonly kind: 'Malformed' });

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly failure: ApiFailure;

  constructor(failure: ApiFailure) {
    super(`${failure.request}: ${failure.message}`, { cause: failure.source });
    this.failure = failure;
  }
}

/** What was asked for; undefined where there is no such object, or kind of object. */
export async function ifThere<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.failure.kind === 'NotFound') return undefined;
    throw error;
  }
}

/** What the caller of a failed call does with its key. */
export type FailureAction =
  /** Read again, decide again; not before `afterMs` if the server asked for that. */
  | { readonly kind: 'Retry'; readonly afterMs?: number }
  /** The object is not there any more: forget it. */
  | { readonly kind: 'Drop' }
  /** The same request will be refused again: report it and come back slowly. */
  | { readonly kind: 'Terminal' };

const ACTIONS: Readonly<Record<ApiFailure['kind'], FailureAction['kind']>> = {
  Unauthorized: 'Retry',
  Forbidden: 'Terminal',
  NotFound: 'Drop',
  Conflict: 'Retry',
  AlreadyExists: 'Retry',
  Gone: 'Retry',
  TestFailed: 'Retry',
  Invalid: 'Terminal',
  Throttled: 'Retry',
  Server: 'Retry',
  BadRequest: 'Terminal',
  Network: 'Retry',
  Timeout: 'Retry',
  Cancelled: 'Drop',
  Malformed: 'Retry',
};

/**
 * Maps a failure to what comes next.
 *
 * A 409 and a failed `test` say that the object changed since it was read. A 422 that names
 * `metadata.uid` says that another object has the name now. Other 422 and 403 answers come from
 * validation, quota, LimitRange, node capacity or RBAC and do not go away by repeating.
 */
export function failureAction(failure: ApiFailure): FailureAction {
  if (objectIsGone(failure)) {
    return { kind: 'Drop' };
  }
  if ('retryAfterMs' in failure) {
    return { kind: 'Retry', afterMs: failure.retryAfterMs };
  }
  return { kind: ACTIONS[failure.kind] };
}

function objectIsGone(failure: ApiFailure): boolean {
  return (
    (failure.kind === 'Invalid' && failure.causes.some(({ field }) => field === 'metadata.uid')) ||
    (failure.kind === 'Forbidden' &&
      failure.causes.some(({ reason }) => reason === 'NamespaceTerminating'))
  );
}

export interface FailedAnswer {
  readonly request: string;
  readonly status: number;
  readonly body: string;
  /** The Retry-After header as it came. */
  readonly retryAfter?: string;
  /** Epoch milliseconds, for a Retry-After that is a date. */
  readonly now: number;
  /** What kind of body was sent: a JSON Patch that does not apply has an answer of its own. */
  readonly sent: 'JsonPatch' | 'Other';
}

/** Reads an answer that is not 2xx, or the object of an ERROR watch event. */
export function failureOfAnswer(answer: FailedAnswer): ApiFailure {
  const status = parseStatus(answer.body);
  const { causes, retryAfterMs } = status;
  const common = {
    request: answer.request,
    status: answer.status,
    reason: status.reason ?? '',
    message: status.message ?? firstLine(answer.body, answer.status),
    source: status.raw,
  };
  switch (answer.status) {
    case 403:
      return { kind: 'Forbidden', ...common, causes };
    case 409:
      return { kind: common.reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict', ...common };
    case 422:
      return answer.sent === 'JsonPatch' && causes.length === 0
        ? { kind: 'TestFailed', ...common }
        : { kind: 'Invalid', ...common, causes };
    default:
      return plainFailure(common, retryAfter(answer) ?? retryAfterMs);
  }
}

/** The answers whose status says it all. */
function plainFailure(common: Answered, retryAfterMs: number | undefined): ApiFailure {
  switch (common.status) {
    case 401:
      return { kind: 'Unauthorized', ...common };
    case 404:
      return { kind: 'NotFound', ...common };
    case 408:
      return { kind: 'Timeout', ...common };
    case 410:
      return { kind: 'Gone', ...common };
    default: {
      const after = retryAfterMs === undefined ? {} : { retryAfterMs };
      if (common.status === 429 || common.status >= 500) {
        return { kind: common.status === 429 ? 'Throttled' : 'Server', ...common, ...after };
      }
      return common.status >= 400
        ? { kind: 'BadRequest', ...common }
        : { kind: 'Malformed', ...common, message: `unexpected status ${common.status}` };
    }
  }
}

/** Five minutes: a header that says more must not switch reverting off. */
const LONGEST_RETRY_AFTER_MS = 300_000;

function retryAfter({ retryAfter: header, now }: FailedAnswer): number | undefined {
  if (header === undefined) {
    return undefined;
  }
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? clampRetryAfter(ms) : undefined;
}

function clampRetryAfter(ms: number): number {
  return Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

interface Status {
  readonly raw: unknown;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly causes: readonly FailureCause[];
  readonly retryAfterMs: number | undefined;
}

/** Proxies and gateways answer with other things than a Status: then every field is unknown. */
function parseStatus(body: string): Status {
  const status = parseJsonObject(body);
  const details = isJsonObject(status?.details) ? status.details : {};
  const seconds = details.retryAfterSeconds;
  return {
    raw: status ?? body,
    reason: text(status?.reason),
    message: text(status?.message),
    causes: Array.isArray(details.causes) ? details.causes.filter(isJsonObject).map(causeOf) : [],
    retryAfterMs:
      typeof seconds === 'number' && seconds > 0 ? clampRetryAfter(seconds * 1000) : undefined,
  };
}

function causeOf(cause: JsonObject): FailureCause {
  return {
    reason: text(cause.reason) ?? '',
    field: text(cause.field) ?? '',
    message: text(cause.message) ?? '',
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Proxies answer with pages of HTML: enough of it to recognize the sender. */
function firstLine(body: string, status: number): string {
  const line = body.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
  return line === '' ? `status ${status} without a message` : line;
}
