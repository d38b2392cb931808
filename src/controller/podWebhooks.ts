/** The webhooks that boost pods: ours, whether it was stopped, and those of others. */
import { fieldsOf, itemsOf, jsonPointer, readMetadata, textOf } from '../boost-engine';
import type { BoostSurroundings, JsonPatch, Raising } from '../boost-engine';
import type { JsonObject, ResourceWatch } from '../kube';
import { POD_WEBHOOK } from '../resources';

/**
 * Added by revert-all: the API server does not call the webhook any more, and everybody sees why.
 * For a running controller it is the sign to raise no pod.
 */
export const STOP_MARK = {
  name: 'autoscaling.x-k8s.io/stopped-by-revert-all',
  expression: 'false',
} as const;

/** The API server's own, where a webhook names none. */
const DEFAULT_TIMEOUT_SECONDS = 10;

interface PodWebhook {
  /** Position in `webhooks`. */
  readonly index: number;
  readonly timeoutMs: number;
  /** Names, in order; undefined where the key is absent. */
  readonly conditions: readonly (string | undefined)[] | undefined;
}

/** What the controller sees of them by its watch. */
export class PodWebhooks {
  readonly watch: ResourceWatch;
  readonly #ownName: string;

  /** @param ownName the name of our own MutatingWebhookConfiguration */
  constructor(watch: ResourceWatch, ownName: string) {
    this.watch = watch;
    this.#ownName = ownName;
  }

  /** Empty while the configurations cannot be read: nothing is known then. */
  get surroundings(): Pick<BoostSurroundings, 'conflictingWebhooks' | 'webhook'> {
    if (!this.watch.isSynced) return {};
    return {
      conflictingWebhooks: conflictingWebhooks(this.watch.cache.list(), this.#ownName),
      webhook: this.#isStopped ? 'Stopped' : 'Serving',
    };
  }

  /**
   * Whether pods are raised: not while the stop mark is there, and not before it could have been seen.
   * Where configurations may not be read at all there is no stop mark either.
   */
  get raising(): Raising {
    if (this.watch.isSynced) return this.#isStopped ? 'Off' : 'On';
    return this.watch.stats().failures > 0 ? 'On' : 'Unknown';
  }

  get #isStopped(): boolean {
    const own = this.watch.cache.get(undefined, this.#ownName);
    return own !== undefined && isStopped(own);
  }
}

/** Names of the configurations, other than ours, that boost pods under the same webhook name. */
export function conflictingWebhooks(
  configurations: readonly JsonObject[],
  ownName: string,
): readonly string[] {
  return configurations
    .filter((configuration) => podWebhooksOf(configuration).some((webhook) => !hasMark(webhook)))
    .map((configuration) => readMetadata(configuration).name ?? '')
    .filter((name) => name !== ownName)
    .sort();
}

/** Whether revert-all has stopped every webhook for pods of this configuration. */
export function isStopped(configuration: JsonObject): boolean {
  const webhooks = podWebhooksOf(configuration);
  return webhooks.length > 0 && webhooks.every(hasMark);
}

/** How long a call of the configuration's webhook for pods may take; undefined where it has none. */
export function timeoutOf(configuration: JsonObject): number | undefined {
  const timeouts = podWebhooksOf(configuration).map(({ timeoutMs }) => timeoutMs);
  return timeouts.length === 0 ? undefined : Math.max(...timeouts);
}

/** Adds the mark; empty where there is nothing to add. It fails if the webhooks have changed since. */
export function stopPatch(configuration: JsonObject): JsonPatch {
  return podWebhooksOf(configuration)
    .filter((webhook) => !hasMark(webhook))
    .flatMap(({ index, conditions }): JsonPatch => {
      const path = jsonPointer('webhooks', index, 'matchConditions');
      return [
        ...guards(configuration, index),
        ...(conditions === undefined
          ? ([
              { op: 'test', path, value: null },
              { op: 'add', path, value: [STOP_MARK] },
            ] as const)
          : ([{ op: 'add', path: `${path}/-`, value: STOP_MARK }] as const)),
      ];
    });
}

/** Takes the mark off; empty where there is none. */
export function undoPatch(configuration: JsonObject): JsonPatch {
  return podWebhooksOf(configuration).flatMap(({ index, conditions = [] }): JsonPatch => {
    const at = conditions.indexOf(STOP_MARK.name);
    if (at === -1) return [];
    const path = jsonPointer('webhooks', index, 'matchConditions', at);
    return [
      ...guards(configuration, index),
      { op: 'test', path: `${path}/name`, value: STOP_MARK.name },
      { op: 'remove', path },
    ];
  });
}

function guards(configuration: JsonObject, index: number): JsonPatch {
  const { uid } = readMetadata(configuration);
  return [
    { op: 'test', path: jsonPointer('metadata', 'uid'), value: uid ?? null },
    { op: 'test', path: jsonPointer('webhooks', index, 'name'), value: POD_WEBHOOK.name },
  ];
}

function hasMark({ conditions = [] }: PodWebhook): boolean {
  return conditions.includes(STOP_MARK.name);
}

function podWebhooksOf(configuration: JsonObject): readonly PodWebhook[] {
  return itemsOf(configuration.webhooks).flatMap((item, index) => {
    const webhook = fieldsOf(item);
    if (webhook.get('name') !== POD_WEBHOOK.name) return [];
    if (pathOf(webhook.get('clientConfig')) !== POD_WEBHOOK.path) return [];
    const seconds = webhook.get('timeoutSeconds');
    const conditions = webhook.get('matchConditions');
    return [
      {
        index,
        timeoutMs: (typeof seconds === 'number' ? seconds : DEFAULT_TIMEOUT_SECONDS) * 1_000,
        conditions: Array.isArray(conditions)
          ? itemsOf(conditions).map((condition) => textOf(fieldsOf(condition).get('name')))
          : undefined,
      },
    ];
  });
}

/** A webhook is reached by a Service and a path, or by a URL. */
function pathOf(clientConfig: unknown): string | undefined {
  const fields = fieldsOf(clientConfig);
  const url = textOf(fields.get('url'));
  if (url !== undefined) return URL.canParse(url) ? new URL(url).pathname : undefined;
  return textOf(fieldsOf(fields.get('service')).get('path'));
}
