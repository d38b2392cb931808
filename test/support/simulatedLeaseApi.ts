/** An API server with one Lease on a manual clock: answers late, loses answers, refuses stale writes. */
import { ApiError, isJsonObject } from '../../src/kube';
import type {
  ApiFailure,
  CallOptions,
  Clock,
  JsonObject,
  KubeClient,
  Patch,
  WatchEvent,
} from '../../src/kube';
import { sleep } from '../../src/kube';

/** What happens to one call. */
export interface CallFate {
  /** Milliseconds until the server has the request, and from there until the answer is back. */
  readonly there: number;
  readonly back: number;
  /** The request never comes there, or its answer never comes back. */
  readonly lost: 'Nothing' | 'Request' | 'Answer';
}

export class SimulatedLeaseApi {
  readonly #clock: Clock;
  readonly #fate: () => CallFate;
  #lease: JsonObject | undefined;
  #version = 0;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, fate: () => CallFate) {
    this.#clock = clock;
    this.#fate = fate;
  }

  /** The holder in the stored Lease; empty where there is none. */
  get holder(): unknown {
    return specOf(this.#lease ?? {}).holderIdentity ?? '';
  }

  /** A client whose watch delivers each change, or one that is dead from the start. */
  client(
    watch: 'Delivers' | 'Dead',
  ): Pick<KubeClient, 'get' | 'list' | 'create' | 'patch' | 'watch' | 'serves'> {
    return {
      get: (_ref, options) => this.#call(options, () => this.#stored()),
      create: (_ref, body, options) => this.#call(options, () => this.#create(body)),
      patch: (_ref, patch, options) => this.#call(options, () => this.#merge(patch)),
      list: (_ref, options) =>
        this.#call(options, () => ({
          items: this.#lease === undefined ? [] : [this.#lease],
          resourceVersion: String(this.#version),
        })),
      watch: (_ref, { signal }) => this.#watch(watch, signal ?? new AbortController().signal),
      serves: () => Promise.resolve(true),
    };
  }

  async *#watch(kind: 'Delivers' | 'Dead', signal: AbortSignal): AsyncGenerator<WatchEvent, void> {
    let wake: () => void = () => undefined;
    const ended = () => signal.aborted;
    signal.addEventListener('abort', () => {
      wake();
    });
    while (!ended()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
        this.#waiting.push(resolve);
      });
      const lease = this.#lease;
      if (ended()) return;
      if (kind === 'Dead' || lease === undefined) continue;
      await sleep(this.#clock, this.#fate().back, signal);
      yield { type: 'MODIFIED', object: lease };
    }
  }

  async #call<T>(options: CallOptions | undefined, handle: () => T): Promise<T> {
    const { there, back, lost } = this.#fate();
    const never = new AbortController().signal;
    const timeoutMs = options?.timeoutMs ?? 10_000;
    await sleep(this.#clock, Math.min(there, timeoutMs), never);
    if (lost === 'Request' || there >= timeoutMs) {
      await sleep(this.#clock, timeoutMs - Math.min(there, timeoutMs), never);
      throw failure('Timeout');
    }
    const answer = handle();
    const left = timeoutMs - there;
    await sleep(this.#clock, Math.min(back, left), never);
    if (lost === 'Answer' || back >= left) {
      await sleep(this.#clock, left - Math.min(back, left), never);
      throw failure('Timeout');
    }
    return answer;
  }

  #stored(): JsonObject {
    if (this.#lease === undefined) throw failure('NotFound');
    return this.#lease;
  }

  #create(body: JsonObject): JsonObject {
    if (this.#lease !== undefined) throw failure('AlreadyExists');
    return this.#store(body);
  }

  /** Whatever the patch does not name stays, as of RFC 7386. */
  #merge(patch: Patch): JsonObject {
    if (patch.type !== 'merge') throw new Error('an election sends merge patches');
    const stored = this.#stored();
    if (versionOf(stored) !== versionOf(patch.body)) throw failure('Conflict');
    return this.#store({ ...stored, spec: { ...specOf(stored), ...specOf(patch.body) } });
  }

  #store(body: JsonObject): JsonObject {
    this.#version += 1;
    const metadata = { name: 'lease', uid: 'lease', resourceVersion: String(this.#version) };
    this.#lease = { ...body, metadata };
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
    return this.#lease;
  }
}

function specOf({ spec }: JsonObject): JsonObject {
  return isJsonObject(spec) ? spec : {};
}

function versionOf({ metadata }: JsonObject): unknown {
  return typeof metadata === 'object' && metadata !== null && 'resourceVersion' in metadata
    ? metadata.resourceVersion
    : undefined;
}

function failure(kind: 'NotFound' | 'AlreadyExists' | 'Conflict' | 'Timeout'): ApiError {
  const common = { request: 'lease', message: kind, source: undefined };
  const answered: ApiFailure =
    kind === 'Timeout' ? { kind, ...common } : { kind, ...common, status: 409, reason: kind };
  return new ApiError(answered);
}
