/** Finds out whether this process could take a boost back: pods/resize is served, and may be patched. */
import { fieldsOf } from '../boost-engine';
import type { RevertibleReason } from '../boost-engine';
import { ApiError, PODS, SELF_SUBJECT_ACCESS_REVIEWS } from '../kube';
import type { Clock, KubeClient } from '../kube';
import type { Logger } from '../observability';

export interface SelfCheckOptions {
  readonly client: Pick<KubeClient, 'create' | 'serves'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long an answer counts: rights and API servers are changed by people. */
const ANSWER_MS = 60_000;

/** How long one counts that a refusal contradicts: a storm of them asks again once in this time. */
const DOUBTED_ANSWER_MS = 1_000;

/** What discovery calls it. */
const RESIZE = { ...PODS, plural: 'pods/resize' };

interface Answer {
  /** Monotonic milliseconds. */
  readonly askedAt: number;
  readonly countsUntil: number;
  /** Undefined where there was no answer. */
  readonly reason: Promise<RevertibleReason | undefined>;
}

export class SelfCheck {
  readonly #options: SelfCheckOptions;
  /** By namespace. */
  readonly #answers = new Map<string, Answer>();

  constructor(options: SelfCheckOptions) {
    this.#options = options;
  }

  /**
   * The answer for one namespace, at most a minute old. Undefined where the API server gave none:
   * nothing is known then. Never rejects for what the API server does.
   */
  revertibleIn(namespace: string): Promise<RevertibleReason | undefined> {
    const now = this.#options.clock.monotonic();
    const known = this.#answers.get(namespace);
    if (known !== undefined && now < known.countsUntil) return known.reason;
    this.#forgetOld(now);
    const reason = this.#ask(namespace);
    this.#answers.set(namespace, { askedAt: now, countsUntil: now + ANSWER_MS, reason });
    return reason;
  }

  /** Milliseconds until the answer for the namespace counts no more. */
  countsFor(namespace: string): number {
    const { countsUntil = 0 } = this.#answers.get(namespace) ?? {};
    return Math.max(0, countsUntil - this.#options.clock.monotonic());
  }

  /** A call was refused there: what is known may not be true any more. */
  doubt(namespace: string): void {
    const known = this.#answers.get(namespace);
    if (known === undefined) return;
    this.#answers.set(namespace, { ...known, countsUntil: known.askedAt + DOUBTED_ANSWER_MS });
  }

  async #ask(namespace: string): Promise<RevertibleReason | undefined> {
    const { client, logger } = this.#options;
    try {
      if (!(await client.serves(RESIZE))) return 'ResizeNotServed';
      if (!(await this.#mayPatch({ resource: 'pods', subresource: 'resize', namespace }))) {
        return 'ResizeForbidden';
      }
      return (await this.#mayPatch({ resource: 'pods', namespace }))
        ? 'CanRevert'
        : 'PodPatchForbidden';
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      logger.warn(
        { namespace, failure: error.failure.kind, detail: error.message },
        'not known whether boosts could be taken back here',
      );
      return undefined;
    }
  }

  async #mayPatch(resourceAttributes: Readonly<Record<string, string>>): Promise<boolean> {
    const review = await this.#options.client.create(SELF_SUBJECT_ACCESS_REVIEWS, {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { ...resourceAttributes, verb: 'patch' } },
    });
    return fieldsOf(review.status).get('allowed') === true;
  }

  #forgetOld(now: number): void {
    for (const [namespace, { countsUntil }] of this.#answers) {
      if (now >= countsUntil) this.#answers.delete(namespace);
    }
  }
}
