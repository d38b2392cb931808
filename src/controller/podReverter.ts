/** Reconciles one boosted pod: gathers what is known, lets the engine decide, sends its patch. */
import { decideRevert, readMetadata } from '../boost-engine';
import type { Raising, RevertDecision, RevertSettings } from '../boost-engine';
import { ApiError, failureAction } from '../kube';
import type { ApiFailure, Clock, JsonObject, KubeClient, Patch } from '../kube';
import type { Logger, Metrics } from '../observability';
import type { BoostDirectory } from './boostDirectory';
import type { ClusterView } from './clusterView';
import {
  again,
  againOnChange,
  fetchPod,
  podRef,
  REFUSED_RETRY_MS,
  UNWATCHED_RETRY_MS,
} from './podAccess';
import type { PodSource } from './podAccess';
import { formatName, nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';
import type { StuckCode, StuckPods } from './stuckPods';
import type { WorkResult } from './workQueue';

export interface PodReverterOptions {
  readonly client: KubeClient;
  readonly view: Pick<ClusterView, 'pod' | 'limitRangesIn'>;
  readonly boosts: Pick<BoostDirectory, 'knowledgeFor'>;
  readonly stuckPods: StuckPods;
  /** Hears of each refusal that repeating does not end. */
  readonly onRefused?: (pod: ObjectName) => void;
  readonly settings: RevertSettings;
  readonly raising: () => Raising;
  /** Hears of a pod whose boost may be yet to come. */
  readonly onRaise: (pod: ObjectName) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

type Mark = Extract<RevertDecision, { readonly kind: `Mark${string}` }>;
type Step = Mark | Extract<RevertDecision, { readonly kind: 'Resize' | 'Clear' }>;

const MARKED: Readonly<Record<Mark['kind'], string>> = {
  MarkPending: 'boost is to be taken back until the pod has a node',
  MarkActive: 'boost is over, whether it is raised yet or not',
  MarkInfeasible: 'the node has no room for the raise, which is to be taken back',
};

export class PodReverter {
  readonly #options: PodReverterOptions;
  /** Pods that wait for their kubelet, by namespace and name; `since` is in epoch milliseconds. */
  readonly #waiting = new Map<string, { readonly uid: string; readonly since: number }>();
  /** Uids of pods whose marker was taken off and which the watch has not let go of yet. */
  readonly #cleared = new Set<string>();

  constructor(options: PodReverterOptions) {
    this.#options = options;
  }

  /** Whether a pod has something to be sent right now: what the safety-net sweep counts. */
  isDue(pod: JsonObject): boolean {
    return isStep(this.#decide(pod));
  }

  /**
   * Whether a pod that left the watch did so because its marker was taken off here. Any other may
   * have lost its label only, and is to be looked at; the answer is given once.
   */
  tookMarkerOff(pod: JsonObject): boolean {
    const { uid } = readMetadata(pod);
    return uid !== undefined && this.#cleared.delete(uid);
  }

  /**
   * Brings one pod a step further. The caller runs it again on every event of the pod or its boost,
   * and when the result asks for it.
   *
   * @throws ApiError for failures that the caller retries
   */
  async reconcile(name: ObjectName): Promise<WorkResult> {
    const cached = this.#options.view.pod(name);
    if (cached !== undefined) return this.#advance(name, cached, 'Watched');
    const pod = await fetchPod(this.#options.client, name);
    return pod === undefined ? this.#forget(name) : this.#advance(name, pod, 'Unwatched');
  }

  async #advance(name: ObjectName, pod: JsonObject, source: PodSource): Promise<WorkResult> {
    const decision = this.#decide(pod);
    switch (decision.kind) {
      case 'Nothing':
        if (source === 'Watched') this.#options.onRaise(name);
        return this.#forget(name);
      case 'Wait':
        this.#options.stuckPods.remove(name);
        if (decision.for === 'Raise') this.#options.onRaise(name);
        if (decision.for === 'Kubelet') this.#noteWaiting(name, pod);
        return again(source, decision.until, this.#options.clock.now());
      case 'Stuck':
        this.#report(name, decision.why, decision.message);
        return againOnChange(source);
      case 'Resize':
      case 'MarkPending':
      case 'MarkActive':
      case 'MarkInfeasible':
      case 'Clear':
        return this.#send(name, decision, source);
    }
  }

  #decide(pod: JsonObject): RevertDecision {
    const { boosts, clock, raising, settings, view } = this.#options;
    const { uid } = readMetadata(pod);
    const noted = this.#waiting.get(formatName(nameOf(pod)));
    const waiting = noted?.uid === uid ? noted : undefined;
    return decideRevert({
      pod,
      boost: boosts.knowledgeFor(pod),
      limitRanges: view.limitRangesIn(nameOf(pod).namespace),
      ...(waiting === undefined ? {} : { waitingSince: waiting.since }),
      raising: raising(),
      now: clock.now(),
      settings,
    });
  }

  #noteWaiting(name: ObjectName, pod: JsonObject): void {
    const { uid = '' } = readMetadata(pod);
    const key = formatName(name);
    if (this.#waiting.get(key)?.uid === uid) return;
    this.#waiting.set(key, { uid, since: this.#options.clock.now() });
  }

  /**
   * Sends a step. A patch whose guard fails was made from a pod that has changed since: the pod is
   * read again and judged again, once; the next event does the rest.
   */
  async #send(name: ObjectName, step: Step, source: PodSource): Promise<WorkResult> {
    try {
      await this.#apply(name, step);
      return again(source);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#options.metrics.revertFailures.inc({ kind: error.failure.kind });
      return this.#afterFailure(name, step, error);
    }
  }

  async #afterFailure(name: ObjectName, step: Step, error: ApiError): Promise<WorkResult> {
    // Of a pod that is there, it means that the API server does not serve pods/resize.
    if (error.failure.kind === 'NotFound') return this.#judgeAgain(name, step, error.failure);
    const action = failureAction(error.failure);
    switch (action.kind) {
      case 'Drop':
        return this.#forget(name);
      case 'Terminal':
        return this.#refused(name, error.failure);
      case 'Retry':
        if (error.failure.kind !== 'TestFailed' && error.failure.kind !== 'Conflict') {
          return { kind: 'Retry', ...(action.afterMs === undefined ? {} : action) };
        }
        return this.#judgeAgain(name, step, error.failure);
    }
  }

  async #judgeAgain(name: ObjectName, failed: Step, failure: ApiFailure): Promise<WorkResult> {
    const pod = await fetchPod(this.#options.client, name);
    if (pod === undefined) return this.#forget(name);
    const decision = this.#decide(pod);
    const isSame =
      decision.kind === failed.kind &&
      JSON.stringify(decision.patch) === JSON.stringify(failed.patch);
    // The same patch for the same pod: somebody else's admission changes it, or we are wrong.
    if (isSame) return this.#refused(name, failure);
    if (isStep(decision)) await this.#apply(name, decision);
    return { kind: 'RunAgainAfter', ms: UNWATCHED_RETRY_MS };
  }

  async #apply(name: ObjectName, step: Step): Promise<void> {
    const { client, clock, logger, metrics } = this.#options;
    const fields = { pod: formatName(name), reason: step.reason };
    switch (step.kind) {
      case 'Resize': {
        const answer = await client.patch(
          { ...podRef(name), subresource: 'resize' },
          patchOf(step),
        );
        this.#waiting.delete(formatName(name));
        metrics.reverts.inc({ reason: step.reason });
        if (step.endedAt !== undefined) {
          metrics.revertLatenessSeconds.observe((clock.now() - step.endedAt) / 1_000);
        }
        logger.info({ ...fields, changes: step.changes }, 'CPU given back');
        this.#compareWithIntent(name, answer);
        return;
      }
      case 'MarkPending':
      case 'MarkActive':
      case 'MarkInfeasible':
        await client.patch(podRef(name), patchOf(step));
        logger.info(fields, MARKED[step.kind]);
        return;
      case 'Clear':
        await client.patch(podRef(name), patchOf(step));
        this.#expectToLeave(name);
        this.#forget(name);
        logger.info({ ...fields, changedByOther: step.changedByOther }, 'boost ended');
        return;
    }
  }

  /** The watch may have been faster than the answer, or never have had the pod: nothing comes then. */
  #expectToLeave(name: ObjectName): void {
    const watched = this.#options.view.pod(name);
    const uid = watched === undefined ? undefined : readMetadata(watched).uid;
    if (uid !== undefined) this.#cleared.add(uid);
  }

  /** Admission plug-ins and webhooks may change a resize without an error. */
  #compareWithIntent(name: ObjectName, answer: JsonObject): void {
    const { kind } = this.#decide(answer);
    if (kind === 'Wait' || kind === 'Clear') return;
    this.#options.logger.warn(
      { pod: formatName(name), decision: kind },
      'the API server accepted the resize, but stored something else',
    );
  }

  #refused(name: ObjectName, failure: ApiFailure): WorkResult {
    this.#options.onRefused?.(name);
    this.#report(name, 'Refused', failure.message);
    return { kind: 'RunAgainAfter', ms: REFUSED_RETRY_MS };
  }

  /** Logged once for each reason; the gauge and the boost's status show it as long as it lasts. */
  #report(name: ObjectName, why: StuckCode, message: string): void {
    const { stuckPods, logger } = this.#options;
    if (stuckPods.add(name, why, message)) {
      logger.warn({ pod: formatName(name), why, detail: message }, 'revert is stuck');
    }
  }

  #forget(name: ObjectName): WorkResult {
    this.#waiting.delete(formatName(name));
    this.#options.stuckPods.remove(name);
    return { kind: 'Done' };
  }
}

function isStep(decision: RevertDecision): decision is Step {
  return 'patch' in decision;
}

function patchOf(step: Step): Patch {
  return { type: 'json', operations: step.patch };
}
