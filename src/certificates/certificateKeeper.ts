/** Keeps the certificates of the webhooks: one step of the plan after the other, for as long as it runs. */
import { ApiError, ResourceWatch, SECRETS, Watchdog, failureAction, sleep } from '../kube';
import type { Clock, JsonObject, KubeClient, ResourceRef } from '../kube';
import type { HealthCheck, Logger, Metrics } from '../observability';
import { takeRound } from './certificateRound';
import { ClusterCertificateStore, WEBHOOK_CONFIGURATIONS } from './certificateStore';
import type { CertificateNames, CertificateSnapshot, CertificateStore } from './certificateStore';
import { STEPS } from './rotationPlan';
import type { RotationSettings } from './rotationPlan';

export interface CertificateKeeperOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'certificateExpiry'>;
  readonly names: CertificateNames;
  readonly settings: RotationSettings;
  /** Where the certificates are; the API server's unless given. */
  readonly store?: CertificateStore;
}

/** So that it sees what no event told of, a damaged clock included. */
const LONGEST_PAUSE_MS = 600_000;

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/**
 * Failures in a row before a refusal is somebody's task: an API server that has just started knows no
 * roles yet and answers Forbidden for a second or two, and this is 2 + 4 s later.
 */
const FAILURES_OF_A_START = 2;

/**
 * A whole rotation takes about eight writes; whoever undoes each of ours at once gets one more every
 * second, and no hot loop.
 */
const WRITES_AT_ONCE = 20;
const WRITES_PER_SECOND = 1;

/** The object is not as it was read: somebody else was first. */
const CONFLICTS: ReadonlySet<string> = new Set(['Conflict', 'AlreadyExists', 'TestFailed']);

/**
 * Runs in every controller, leader or not: serving never waits for an election.
 *
 * Guarantees: any number of keepers at once do no harm, since each write is refused where somebody
 * else was first; one that is killed after any write is carried on by the others, as everything it
 * knew is stored.
 */
export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions;
  readonly #store: CertificateStore;
  readonly #watches: readonly ResourceWatch[];
  readonly #watchdog: Watchdog;
  readonly #stopping = new AbortController();
  #news = new AbortController();
  #running: Promise<void> | undefined;
  #failures = 0;
  #writesLeft = WRITES_AT_ONCE;
  #countedAt: number;

  constructor(options: CertificateKeeperOptions) {
    const { clock, names } = options;
    this.#options = options;
    this.#store = options.store ?? new ClusterCertificateStore(options);
    this.#watchdog = new Watchdog('certificates', clock);
    this.#countedAt = clock.monotonic();
    this.#watches = [
      this.#watch(SECRETS, names.authoritySecret, names.namespace),
      this.#watch(SECRETS, names.servingSecret, names.namespace),
      this.#watch(WEBHOOK_CONFIGURATIONS.mutating, names.webhookConfiguration),
      this.#watch(WEBHOOK_CONFIGURATIONS.validating, names.webhookConfiguration),
    ];
  }

  get liveChecks(): readonly HealthCheck[] {
    return [this.#watchdog.check, ...this.#watches.map((watch) => watch.liveCheck)];
  }

  start(): void {
    for (const watch of this.#watches) watch.start();
    this.#running ??= this.#run();
  }

  /** Resolves when the write that is under way has been answered. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#news.abort();
    await this.#running;
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const news = new AbortController();
      this.#news = news;
      const pauseMs = await this.#watchdog.during(() => this.#attempt());
      // News may be what ends a failure, but must not make it a hot loop.
      if (this.#failures > 0) await sleep(clock, FIRST_RETRY_MS, this.#stopping.signal);
      const ends = AbortSignal.any([this.#stopping.signal, news.signal]);
      if (pauseMs > 0) await sleep(clock, pauseMs, ends);
    }
  }

  /** Takes one step, or none. Resolves with how long to wait before the next; never rejects. */
  async #attempt(): Promise<number> {
    const { clock } = this.#options;
    try {
      const until = await this.#advance();
      this.#failures = 0;
      if (until !== undefined) return Math.min(until - clock.now(), LONGEST_PAUSE_MS);
      return this.#pauseAfterWrite();
    } catch (error) {
      return this.#pauseAfterFailure(error);
    }
  }

  /** Resolves with the time until which nothing is to be done; undefined after a step. */
  async #advance(): Promise<number | undefined> {
    const { clock, logger, settings } = this.#options;
    const round = await takeRound({ store: this.#store, settings, now: () => clock.now() });
    this.#measure(round.snapshot);
    switch (round.kind) {
      case 'Rested':
        return round.until;
      case 'Took': {
        const { step } = round;
        const where = step.kind === 'PublishBundle' ? { configuration: step.configuration } : {};
        logger.info({ step: step.reason, ...where }, STEPS[step.reason]);
        return undefined;
      }
    }
  }

  #pauseAfterWrite(): number {
    const now = this.#options.clock.monotonic();
    const regained = ((now - this.#countedAt) / 1_000) * WRITES_PER_SECOND;
    this.#writesLeft = Math.min(this.#writesLeft + regained, WRITES_AT_ONCE) - 1;
    this.#countedAt = now;
    if (this.#writesLeft >= 0) return 0;
    this.#options.logger.warn(
      {},
      'certificates change all the time: does somebody else write the Secrets or the caBundle?',
    );
    return 1_000 / WRITES_PER_SECOND;
  }

  #pauseAfterFailure(error: unknown): number {
    const { logger, names } = this.#options;
    const failure = error instanceof ApiError ? error.failure : undefined;
    if (failure !== undefined && CONFLICTS.has(failure.kind)) {
      logger.debug({ error }, 'somebody else was first');
      return this.#pauseAfterWrite();
    }
    this.#failures += 1;
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS);
    const fields = { error, failure: failure?.kind ?? 'Unknown', retryInMs: pauseMs };
    // Such as an API server that is away: nobody has to do anything about the certificates.
    const isAway = failure !== undefined && failureAction(failure).kind === 'Retry';
    if (isAway || this.#failures <= FAILURES_OF_A_START) {
      logger.warn(fields, 'the certificates cannot be kept up, trying again');
      return pauseMs;
    }
    const mayNotCreate = failure?.kind === 'Forbidden' && failure.request.startsWith('CREATE');
    logger.error(
      fields,
      mayNotCreate
        ? `the Secrets ${names.authoritySecret} and ${names.servingSecret} must be in namespace ${names.namespace}, empty at first: one is missing, and this process may not create it`
        : 'the certificates cannot be kept up, trying again',
    );
    return pauseMs;
  }

  #measure({ state: { authorities, serving } }: CertificateSnapshot): void {
    const { certificateExpiry } = this.#options.metrics;
    const ca = authorities.signer?.certificate.notAfter;
    if (ca !== undefined) certificateExpiry.set({ certificate: 'ca' }, ca / 1_000);
    const leaf = serving?.notAfter;
    if (leaf !== undefined) certificateExpiry.set({ certificate: 'serving' }, leaf / 1_000);
  }

  /** Only wakes: what is decided is decided by what is read afterwards. */
  #watch(resource: ResourceRef, name: string, namespace?: string): ResourceWatch {
    const { client, clock, logger } = this.#options;
    return new ResourceWatch({
      client,
      clock,
      logger,
      resource,
      selection: {
        fieldSelector: `metadata.name=${name}`,
        ...(namespace === undefined ? {} : { namespace }),
      },
      onEvent: () => {
        this.#news.abort();
      },
      transform: withoutContent,
    });
  }
}

/** Keys of an authority have no business in a cache that nobody reads. */
function withoutContent({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  return { apiVersion, kind, metadata };
}
