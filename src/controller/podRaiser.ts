/** Raises pods that are there: gathers what is known, lets the engine decide, sends its steps. */
import { BOOST_KEY, decideRaise, readMetadata } from '../boost-engine';
import type { RaiseDecision, RaiseInput, RaiseSettings, Raising } from '../boost-engine';
import { ApiError, failureAction } from '../kube';
import type { ApiFailure, Clock, JsonObject, KubeClient } from '../kube';
import type { Logger, Metrics } from '../observability';
import type { ClusterView } from './clusterView';
import { again, fetchPod, podRef, REFUSED_RETRY_MS, UNWATCHED_RETRY_MS } from './podAccess';
import type { PodSource } from './podAccess';
import { formatName, nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import type { WorkResult } from './workQueue';

export interface PodRaiserOptions {
  readonly client: KubeClient;
  readonly view: ClusterView;
  /** Whether this process may act, and pods are raised, at this very moment; asked before each step. */
  readonly mayAct: () => boolean;
  readonly raising: () => Raising;
  readonly settings: RaiseSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

type Step = Extract<
  RaiseDecision,
  { readonly kind: 'MarkPending' | 'Raise' | 'MarkActive' | 'GiveUp' }
>;
type Refusal = NonNullable<RaiseInput['refusal']>;

type Sent =
  | { readonly kind: 'Accepted'; readonly pod: JsonObject }
  /** A guard did not hold: the pod as it is now. */
  | { readonly kind: 'Changed'; readonly pod: JsonObject }
  | { readonly kind: 'Gone' }
  | { readonly kind: 'Refused'; readonly failure: ApiFailure };

/**
 * Three steps, and as many again where somebody else writes at the same time; a kubelet writes about
 * once a second while a pod starts.
 */
const MAX_STEPS = 6;

export class PodRaiser {
  readonly #options: PodRaiserOptions;
  /**
   * The record, by uid of the pod, that the last step here has replaced: a cache that still has it is
   * behind, and the pod is not to be judged by it.
   */
  readonly #replaced = new Map<string, string>();

  constructor(options: PodRaiserOptions) {
    this.#options = options;
  }

  /** Whether a pod has a step to be sent, or may have one later without another event. */
  isCandidate(pod: JsonObject): boolean {
    return this.#isReady && this.#decide(pod).kind !== 'Leave';
  }

  /** Whether a pod has a step to be sent right now: what the safety-net sweep counts. */
  isDue(pod: JsonObject): boolean {
    return this.#isReady && !this.#isBehind(pod) && isStep(this.#decide(pod));
  }

  forget(pod: JsonObject): void {
    this.#replaced.delete(readMetadata(pod).uid ?? '');
  }

  /**
   * Takes one pod as far as it gets at present.
   *
   * @throws ApiError for failures that the caller retries
   */
  async reconcile(name: ObjectName): Promise<WorkResult> {
    if (!this.#isReady) return { kind: 'Done' };
    const { client, view } = this.#options;
    const cached = view.pod(name) ?? view.startingPod(name);
    if (cached !== undefined) {
      return this.#isBehind(cached) ? { kind: 'Done' } : this.#advance(name, cached, 'Watched');
    }
    const pod = await fetchPod(client, name);
    return pod === undefined ? { kind: 'Done' } : this.#advance(name, pod, 'Unwatched');
  }

  get #isReady(): boolean {
    const { view, raising } = this.#options;
    return view.isCompleteForRaises && raising() === 'On';
  }

  async #advance(name: ObjectName, first: JsonObject, source: PodSource): Promise<WorkResult> {
    const { clock, mayAct } = this.#options;
    let pod = first;
    let refusal: Refusal | undefined;
    for (let steps = 0; steps < MAX_STEPS && mayAct() && this.#isReady; steps += 1) {
      const decision = this.#decide(pod, refusal);
      if (decision.kind === 'Leave') return { kind: 'Done' };
      if (decision.kind === 'Wait') return again(source, decision.until, clock.now());
      const sent = await this.#send(name, pod, decision);
      switch (sent.kind) {
        case 'Gone':
          return { kind: 'Done' };
        case 'Accepted':
          // If it is not there then, somebody's admission takes it away, and would do so for ever.
          if (decision.kind === 'Raise') refusal = 'RaiseRefused';
          pod = sent.pod;
          break;
        case 'Changed':
          pod = sent.pod;
          break;
        case 'Refused':
          this.#reportRefusal(name, decision, sent.failure);
          if (decision.kind !== 'Raise') return { kind: 'RunAgainAfter', ms: REFUSED_RETRY_MS };
          refusal = refusalOf(sent.failure);
          break;
      }
    }
    return { kind: 'RunAgainAfter', ms: UNWATCHED_RETRY_MS };
  }

  #decide(pod: JsonObject, refusal?: Refusal): RaiseDecision {
    const { view, clock, settings } = this.#options;
    const { namespace } = nameOf(pod);
    return decideRaise({
      pod,
      boosts: view.boostsIn(namespace),
      limitRanges: view.limitRangesIn(namespace),
      quotas: view.quotasIn(namespace),
      notRevertible: view.notRevertibleIn(namespace),
      ...(refusal === undefined ? {} : { refusal }),
      now: clock.now(),
      settings,
    });
  }

  #isBehind(pod: JsonObject): boolean {
    const { uid = '', annotations } = readMetadata(pod);
    const replaced = this.#replaced.get(uid);
    return replaced !== undefined && replaced === annotations?.get(BOOST_KEY);
  }

  async #send(name: ObjectName, pod: JsonObject, step: Step): Promise<Sent> {
    const { client, metrics } = this.#options;
    const ref = step.kind === 'Raise' ? { ...podRef(name), subresource: 'resize' } : podRef(name);
    try {
      const answer = await client.patch(ref, { type: 'json', operations: step.patch });
      this.#note(name, pod, step);
      return { kind: 'Accepted', pod: answer };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      metrics.raiseFailures.inc({ kind: error.failure.kind });
      return this.#afterFailure(name, pod, error);
    }
  }

  async #afterFailure(name: ObjectName, pod: JsonObject, error: ApiError): Promise<Sent> {
    const { failure } = error;
    switch (failureAction(failure).kind) {
      case 'Drop':
        return { kind: 'Gone' };
      case 'Terminal':
        return { kind: 'Refused', failure };
      case 'Retry': {
        if (failure.kind !== 'TestFailed' && failure.kind !== 'Conflict') throw error;
        const now = await fetchPod(this.#options.client, name);
        if (now === undefined) return { kind: 'Gone' };
        // The pod is as it was: somebody else's admission changes the patch, or we are wrong.
        const isSame = versionOf(now) === versionOf(pod);
        return isSame ? { kind: 'Refused', failure } : { kind: 'Changed', pod: now };
      }
    }
  }

  #note(name: ObjectName, before: JsonObject, step: Step): void {
    const { logger, metrics } = this.#options;
    const pod = formatName(name);
    switch (step.kind) {
      case 'MarkPending':
        logger.debug(
          { pod, boost: step.boost.name, cause: step.cause },
          'pod marked for its boost',
        );
        return;
      case 'Raise':
        metrics.catchUps.inc({ result: 'Raised', reason: step.cause });
        logger.info(
          { pod, boost: step.boost.name, cause: step.cause, changes: step.changes },
          'CPU raised in place',
        );
        return;
      case 'MarkActive':
        this.#noteReplaced(before);
        return;
      case 'GiveUp':
        this.#noteReplaced(before);
        metrics.catchUps.inc({ result: 'GivenUp', reason: step.code });
        logger.info({ pod, code: step.code, detail: step.message }, 'boost given up');
        return;
    }
  }

  #noteReplaced(before: JsonObject): void {
    const { uid, annotations } = readMetadata(before);
    const text = annotations?.get(BOOST_KEY);
    if (uid !== undefined && text !== undefined) this.#replaced.set(uid, text);
  }

  #reportRefusal(name: ObjectName, step: Step, failure: ApiFailure): void {
    this.#options.logger.warn(
      { pod: formatName(name), step: step.kind, failure: failure.kind, detail: failure.message },
      'the API server refuses a step of a raise',
    );
  }
}

function isStep(decision: RaiseDecision): decision is Step {
  return decision.kind !== 'Leave' && decision.kind !== 'Wait';
}

function versionOf(pod: JsonObject): string | undefined {
  return readMetadata(pod).resourceVersion;
}

/** PodResizeValidator: the pod with its boost asks for more than the whole node has. */
function refusalOf(failure: ApiFailure): Refusal {
  const isForRoom =
    failure.kind === 'Forbidden' && failure.causes.some(({ reason }) => reason === 'NodeCapacity');
  return isForRoom ? 'NoRoomOnNode' : 'RaiseRefused';
}
