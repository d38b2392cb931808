/** Gives every boosted pod of the cluster its CPU back now, whoever boosted it: for emergencies, and the end. */
import { ApiError, LIMIT_RANGES, MUTATING_WEBHOOK_CONFIGURATIONS, ifThere, sleep } from '../kube';
import type { ApiFailure, Clock, JsonObject, KubeClient, ObjectRef } from '../kube';
import type { Logger, Metrics } from '../observability';
import { markedPods } from './markedPods';
import { PodReverter } from './podReverter';
import { conflictingWebhooks, stopPatch, timeoutOf, undoPatch } from './podWebhooks';
import { formatKey, formatName, nameOf, parseKey } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import { StuckPods } from './stuckPods';
import { WorkQueue } from './workQueue';
import type { WorkResult } from './workQueue';

export interface RevertAllOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** In [0, 1). */
  readonly random: () => number;
  readonly settings: RevertAllSettings;
  /** `Keep`: pods are boosted on, and running controllers raise on. */
  readonly boosting: 'Stop' | 'Keep';
  /** Ends the work: what is under way is finished, nothing more is begun. */
  readonly signal: AbortSignal;
}

export interface RevertAllSettings {
  /** Name of the MutatingWebhookConfiguration that is stopped. */
  readonly webhookConfiguration: string;
  readonly limitRangeDefaults: 'Avoid' | 'Accept';
  readonly confirmTimeoutMs: number;
}

export interface RevertAllProgress {
  readonly phase: 'Stopping' | 'Settling' | 'Reverting';
  /** Pods that had a record at any time. */
  readonly found: number;
  /** Of these, the ones that are not done. */
  readonly left: number;
  /** Of these, the ones that do not get on by themselves. */
  readonly stuck: number;
  /** What the API server said to the last call, where that failed. */
  readonly problem?: string;
}

export interface RemainingPod extends ObjectName {
  /** Why, for people; from the engine or the API server. */
  readonly why: string;
}

/** What was found of the webhook. */
export type WebhookState =
  | { readonly kind: 'Stopped' | 'WasStopped'; readonly timeoutMs: number }
  /** There is no such configuration, or it has no webhook of ours; those that boost pods all the same. */
  | { readonly kind: 'Absent'; readonly others: readonly string[] }
  /** It was to be left alone. */
  | { readonly kind: 'Kept' };

export interface RevertAllOutcome {
  /**
   * - `Done`: two complete lists in a row had no boosted pod.
   * - `OnlyStuck`: what remains needs a person.
   * - `Ended`: the signal came first.
   * - `Failed`: the API server does not let us.
   */
  readonly kind: 'Done' | 'OnlyStuck' | 'Ended' | 'Failed';
  readonly webhook: WebhookState | undefined;
  readonly found: number;
  readonly remaining: readonly RemainingPod[];
  readonly problem?: string;
}

/**
 * After a webhook configuration has changed "the system will take a few seconds to honor the new
 * configuration":
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 * A review that begins just then takes the webhook's timeout at most.
 */
const CONFIGURATION_LAG_MS = 5_000;

/** Keys worked on at the same time, as the controller does. */
const CONCURRENCY = 16;

/** Between the end of one list of all pods and the next; a list that took long gets longer rests. */
const PAUSE_MS = 1_000;

/** So many lists in a row with no pod: one that was under way at the first is in the second. */
const EMPTY_LISTS = 2;

/** So many rounds in a row in which every pod was stuck: each was tried as often. */
const STUCK_ROUNDS = 3;

/** Backoff of a call that everything waits for. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 5_000;

/** An API server that has just started refuses everybody for a moment; this is some 30 s of tries. */
const MAX_REFUSALS = 10;

const REFUSALS: ReadonlySet<ApiFailure['kind']> = new Set([
  'Forbidden',
  'Unauthorized',
  'BadRequest',
  'Invalid',
]);

/**
 * One run. Idempotent, and harmless beside running controllers: every patch is the guarded one that
 * a controller would send for a pod whose boost was deleted long ago.
 */
export class RevertAll {
  readonly #options: RevertAllOptions;
  readonly #stuckPods: StuckPods;
  readonly #reverter: PodReverter;
  readonly #queue: WorkQueue;
  readonly #found = new Set<string>();
  /** Pods that are not done, and what is known about why. */
  readonly #open = new Map<string, { readonly pod: ObjectName; why: string }>();
  #limitRanges = new Map<string, JsonObject[]>();
  #phase: RevertAllProgress['phase'] = 'Stopping';
  #problem: string | undefined;

  constructor(options: RevertAllOptions) {
    const { clock, logger, metrics, random, settings } = options;
    this.#options = options;
    this.#stuckPods = new StuckPods(metrics.stuckPods, () => undefined);
    this.#reverter = new PodReverter({
      ...options,
      view: {
        pod: () => undefined,
        limitRangesIn: (namespace) => this.#limitRanges.get(namespace) ?? [],
      },
      boosts: { knowledgeFor: () => ({ kind: 'Unwanted' }) },
      stuckPods: this.#stuckPods,
      raising: () => 'Off',
      onRaise: () => undefined,
      // A boost that nobody wants ends now, so no time matters.
      settings: { ...settings, boostDeletedGraceMs: 0, maximumBoostMs: 0, unschedulableGraceMs: 0 },
    });
    this.#queue = new WorkQueue({
      worker: (key) => this.#work(key),
      clock,
      logger,
      concurrency: CONCURRENCY,
      random,
    });
  }

  /** How far it is; cheap enough to be asked for often. */
  get progress(): RevertAllProgress {
    return {
      phase: this.#phase,
      found: this.#found.size,
      left: this.#open.size,
      stuck: this.#stuckPods.size,
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
  }

  /** Rejects only for a mistake of ours. */
  async run(): Promise<RevertAllOutcome> {
    const { boosting } = this.#options;
    let webhook: WebhookState | undefined;
    let kind: RevertAllOutcome['kind'];
    try {
      webhook = boosting === 'Keep' ? { kind: 'Kept' } : await this.#stopWebhook();
      await this.#settle(webhook);
      this.#phase = 'Reverting';
      kind = await this.#revertUntilEmpty();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      kind = this.#options.signal.aborted ? 'Ended' : 'Failed';
    }
    await this.#queue.stop();
    return {
      kind,
      webhook,
      found: this.#found.size,
      remaining: kind === 'Done' ? [] : this.#remaining(),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
  }

  /** Stops the webhook, which is also the sign for controllers to raise nothing more. */
  #stopWebhook(): Promise<WebhookState> {
    const { client, settings } = this.#options;
    const ref = configurationRef(settings.webhookConfiguration);
    return this.#persist(async () => {
      const configuration = await ifThere(client.get(ref));
      const timeoutMs = configuration === undefined ? undefined : timeoutOf(configuration);
      if (configuration === undefined || timeoutMs === undefined) {
        return { kind: 'Absent', others: await this.#otherWebhooks() };
      }
      const operations = stopPatch(configuration);
      if (operations.length === 0) return { kind: 'WasStopped', timeoutMs };
      await client.patch(ref, { type: 'json', operations });
      return { kind: 'Stopped', timeoutMs };
    });
  }

  /** None for whoever may not list them, as the hook of the chart, which was told the right name. */
  async #otherWebhooks(): Promise<readonly string[]> {
    const { client, settings, signal } = this.#options;
    try {
      const { items } = await client.list(MUTATING_WEBHOOK_CONFIGURATIONS, { signal });
      return conflictingWebhooks(items, settings.webhookConfiguration);
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'Forbidden') return [];
      throw error;
    }
  }

  /** Waits until no pod can come any more that was boosted before the webhook was stopped. */
  async #settle(webhook: WebhookState): Promise<void> {
    if (!('timeoutMs' in webhook)) return;
    this.#phase = 'Settling';
    await this.#sleep(webhook.timeoutMs + CONFIGURATION_LAG_MS);
  }

  async #revertUntilEmpty(): Promise<'Done' | 'OnlyStuck'> {
    const { clock } = this.#options;
    let [emptyLists, stuckRounds] = [0, 0];
    for (;;) {
      const begun = clock.monotonic();
      const marked = await this.#persist(() => this.#queueMarked());
      const tookMs = clock.monotonic() - begun;
      emptyLists = marked.length === 0 ? emptyLists + 1 : 0;
      if (emptyLists >= EMPTY_LISTS) return 'Done';
      stuckRounds = this.#needsPerson(marked) ? stuckRounds + 1 : 0;
      if (stuckRounds >= STUCK_ROUNDS) return 'OnlyStuck';
      await this.#sleep(Math.max(PAUSE_MS, tookMs));
    }
  }

  /** One list of all pods; those with a record are worked on as soon as their page is there. */
  async #queueMarked(): Promise<readonly ObjectName[]> {
    const { client, signal } = this.#options;
    this.#limitRanges = await this.#listLimitRanges();
    const all: ObjectName[] = [];
    for await (const marked of markedPods(client, signal)) {
      for (const pod of marked) this.#queuePod(pod);
      all.push(...marked);
    }
    return all;
  }

  /** A pod that waits for its next try is left to it, unless that is a matter of minutes. */
  #queuePod(pod: ObjectName): void {
    const name = formatName(pod);
    this.#found.add(name);
    if (!this.#open.has(name)) this.#open.set(name, { pod, why: 'not looked at yet' });
    const key = formatKey({ ...pod, kind: 'Pod' });
    if (!this.#queue.has(key) || this.#stuckPods.has(pod)) this.#queue.add(key);
  }

  /** A kubelet that does not answer may come back; whatever else stands in the way stays there. */
  #needsPerson(marked: readonly ObjectName[]): boolean {
    return (
      marked.length > 0 &&
      marked.every((pod) => {
        const stuck = this.#stuckPods.get(pod);
        return stuck !== undefined && stuck.code !== 'NotConfirmed';
      })
    );
  }

  async #work(key: string): Promise<WorkResult> {
    const pod = parseKey(key);
    if (pod === undefined) return { kind: 'Done' };
    const result = await this.#reconcile(pod);
    if (result.kind === 'Done') this.#open.delete(formatName(pod));
    return result;
  }

  async #reconcile(pod: ObjectName): Promise<WorkResult> {
    try {
      const result = await this.#reverter.reconcile(pod);
      const waits = 'the kubelet has not confirmed the resize yet';
      this.#note(pod, result.kind === 'Retry' ? 'the last call failed' : waits);
      return result;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#note(pod, error.message);
      return { kind: 'Retry' };
    }
  }

  #note(pod: ObjectName, why: string): void {
    const open = this.#open.get(formatName(pod));
    if (open !== undefined) open.why = why;
  }

  #remaining(): readonly RemainingPod[] {
    return Array.from(this.#open.values(), ({ pod: { namespace, name }, why }) => {
      const stuck = this.#stuckPods.get({ namespace, name });
      return {
        namespace,
        name,
        why: stuck === undefined ? why : `${stuck.code}: ${stuck.message}`,
      };
    });
  }

  /** By namespace. */
  async #listLimitRanges(): Promise<Map<string, JsonObject[]>> {
    const { client, signal } = this.#options;
    const found = new Map<string, JsonObject[]>();
    let token: string | undefined;
    do {
      const from = token === undefined ? {} : { continue: token };
      const page = await client.list(LIMIT_RANGES, { limit: 500, signal, ...from });
      for (const item of page.items) {
        const { namespace } = nameOf(item);
        found.set(namespace, [...(found.get(namespace) ?? []), item]);
      }
      token = page.continue;
    } while (token !== undefined);
    return found;
  }

  /**
   * Repeats a call for as long as it takes: the API server may be away.
   *
   * @throws ApiError when it is refused again and again, or the signal ends it
   */
  async #persist<T>(attempt: () => Promise<T>): Promise<T> {
    const { logger, random } = this.#options;
    for (let failures = 1, refusals = 0; ; failures += 1) {
      try {
        const result = await attempt();
        this.#problem = undefined;
        return result;
      } catch (error) {
        if (!(error instanceof ApiError) || this.#options.signal.aborted) throw error;
        this.#problem = error.message;
        refusals = REFUSALS.has(error.failure.kind) ? refusals + 1 : 0;
        if (refusals >= MAX_REFUSALS) throw error;
        logger.warn({ failure: error.failure.kind, detail: error.message }, 'trying again');
        const backoff = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);
        await this.#sleep(backoff * (0.5 + random() / 2));
      }
    }
  }

  /** @throws ApiError when the signal came meanwhile */
  async #sleep(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    await sleep(clock, ms, signal);
    if (!signal.aborted) return;
    const message = 'the run was ended';
    throw new ApiError({ kind: 'Cancelled', request: 'revert-all', message, source: undefined });
  }
}

/**
 * Takes the mark of `revert-all` off the webhook again.
 *
 * @returns what was found; `Absent` where there is no such configuration
 * @throws ApiError
 */
export async function undoRevertAll(
  client: Pick<KubeClient, 'get' | 'patch'>,
  webhookConfiguration: string,
): Promise<'Undone' | 'NothingToUndo' | 'Absent'> {
  const ref = configurationRef(webhookConfiguration);
  const configuration = await ifThere(client.get(ref));
  if (configuration === undefined) return 'Absent';
  const operations = undoPatch(configuration);
  if (operations.length === 0) return 'NothingToUndo';
  await client.patch(ref, { type: 'json', operations });
  return 'Undone';
}

function configurationRef(name: string): ObjectRef {
  return { ...MUTATING_WEBHOOK_CONFIGURATIONS, name };
}
