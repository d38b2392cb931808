/** A client whose lists and watches answer from a script, for the faults no real server has on demand. */
import { ApiError } from '../../../src/kube';
import type {
  ApiFailure,
  JsonObject,
  KubeClient,
  ListOptions,
  ListPage,
  ResourceRef,
  WatchEvent,
  WatchOptions,
} from '../../../src/kube';

/** What happens on a stream, in order; after the last it stays open and mute. */
export type StreamStep = WatchEvent | { readonly fails: ApiFailure } | 'Closes';

export interface Script {
  /** One entry per list call; after the last a list is pending. */
  readonly lists?: readonly (ListPage | { readonly fails: ApiFailure })[];
  readonly streams?: readonly (readonly StreamStep[])[];
  readonly serves?: boolean;
}

export class ScriptedClient implements KubeClient {
  readonly listed: ListOptions[] = [];
  readonly watched: WatchOptions[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  async list(_resource: ResourceRef, options: ListOptions = {}): Promise<ListPage> {
    this.listed.push(options);
    const answer = this.#script.lists?.[this.listed.length - 1];
    if (answer === undefined) return untilAborted(options.signal);
    if ('fails' in answer) throw new ApiError(answer.fails);
    return answer;
  }

  async *watch(_resource: ResourceRef, options: WatchOptions): AsyncGenerator<WatchEvent, void> {
    this.watched.push(options);
    for (const step of this.#script.streams?.[this.watched.length - 1] ?? []) {
      if (step === 'Closes') return;
      if ('fails' in step) throw new ApiError(step.fails);
      yield step;
    }
    await untilAborted(options.signal);
  }

  serves(): Promise<boolean> {
    return Promise.resolve(this.#script.serves ?? true);
  }

  get(): Promise<JsonObject> {
    return notScripted('get');
  }

  create(): Promise<JsonObject> {
    return notScripted('create');
  }

  replace(): Promise<JsonObject> {
    return notScripted('replace');
  }

  patch(): Promise<JsonObject> {
    return notScripted('patch');
  }

  delete(): Promise<JsonObject> {
    return notScripted('delete');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function notScripted(verb: string): Promise<never> {
  return Promise.reject(new Error(`${verb} is not in the script`));
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = (): void => {
      const common = { request: 'WATCH pods', message: 'ended', source: undefined };
      reject(new ApiError({ kind: 'Cancelled', ...common }));
    };
    if (signal?.aborted === true) end();
    signal?.addEventListener('abort', end, { once: true });
  });
}
