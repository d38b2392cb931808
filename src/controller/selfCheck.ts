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

/** How long an answer counts, in milliseconds: rights and API servers are changed by people. */
export const SELF_CHECK_MS = 60_000;

/** A storm of refusals asks again once in this time, and not for each of them. */
const SHORTEST_MS = 1_000;

/** What discovery calls it. */
const RESIZE = { ...PODS, plural: 'pods/resize' };

interface Answer {
  /** Monotonic milliseconds at which it was asked for. */
  readonly askedAt: number;
  /** Undefined where there was no answer. */
  readonly reason: Promise<RevertibleReason | undefined>;
}

export class SelfCheck {
  readonly #options: SelfCheckOptions;
  /** By namespace, the oldest first. */
  readonly #answers = new Map<string, Answer>();

  constructor(options: SelfCheckOptions) {
    this.#options = options;
  }

  /**
   * The answer for one namespace, at most a minute old. Undefined where the API server gave none:
   * nothing is known then. Never rejects for what the API server does.
   */
  revertibleIn(namespace: string): Promise<RevertibleReason | undefined> {
    const known = this.#answers.get(namespace);
    if (known !== undefined && this.#ageOf(known) < SELF_CHECK_MS) return known.reason;
    const reason = this.#ask(namespace);
    this.#answers.delete(namespace);
    this.#forgetOld();
    this.#answers.set(namespace, { askedAt: this.#options.clock.monotonic(), reason });
    return reason;
  }

  /** A call was refused there: what is known may not be true any more. */
  doubt(namespace: string): void {
    const known = this.#answers.get(namespace);
    if (known !== undefined && this.#ageOf(known) >= SHORTEST_MS) this.#answers.delete(namespace);
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

  #forgetOld(): void {
    for (const [namespace, answer] of this.#answers) {
      if (this.#ageOf(answer) < SELF_CHECK_MS) return;
      this.#answers.delete(namespace);
    }
  }

  #ageOf({ askedAt }: Answer): number {
    return this.#options.clock.monotonic() - askedAt;
  }
}
