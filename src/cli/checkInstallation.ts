/** Finds out whether an installation works: the webhooks answer, and a controller acts. */
import { fieldsOf, itemsOf, textOf } from '../boost-engine';
import { isStopped } from '../controller';
import {
  ApiError,
  LEASES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  identityOf,
  sleep,
} from '../kube';
import type { Clock, JsonObject, KubeClient, ObjectRef } from '../kube';
import { STARTUP_CPU_BOOST } from '../resources';

export interface CheckOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Of the installation. */
  readonly namespace: string;
  readonly lease: ObjectRef['name'];
  readonly webhookConfiguration: string;
  /** Hears what is waited for. */
  readonly onWait: (what: string) => void;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

export interface CheckResult {
  readonly name: string;
  /** Undefined where all is well. */
  readonly problem: string | undefined;
}

interface Check {
  readonly name: string;
  readonly look: () => Promise<string | undefined>;
}

/** A leader renews its Lease each second. */
const PAUSE_MS = 1_000;

/** Looks until everything is well or the signal ends it; a new installation needs a moment. */
export async function checkInstallation(options: CheckOptions): Promise<readonly CheckResult[]> {
  const { clock, onWait, signal } = options;
  const checks = [boostWebhookCheck(options), podWebhookCheck(options), controllerCheck(options)];
  for (;;) {
    const results = await Promise.all(checks.map(carriedOut));
    const failed = results.find(({ problem }) => problem !== undefined);
    if (failed === undefined || signal.aborted) return results;
    onWait(`${failed.name}: ${failed.problem ?? ''}`);
    await sleep(clock, PAUSE_MS, signal);
  }
}

async function carriedOut({ name, look }: Check): Promise<CheckResult> {
  try {
    return { name, problem: await look() };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { name, problem: error.message };
  }
}

/**
 * Asks for a boost, without storing it. The webhook must not fail (failurePolicy), so an answer went the
 * whole way from the API server through the Service and its certificate to admission and back.
 */
function boostWebhookCheck(options: CheckOptions): Check {
  const { client, namespace, webhookConfiguration: name } = options;
  return {
    name: 'webhook for boosts',
    look: async () => {
      const configuration = await client.get({ ...VALIDATING_WEBHOOK_CONFIGURATIONS, name });
      const policies = itemsOf(configuration.webhooks).map((webhook) =>
        textOf(fieldsOf(webhook).get('failurePolicy')),
      );
      if (!policies.includes('Fail')) return `${name} has no webhook that has to be asked`;
      await client.create({ ...STARTUP_CPU_BOOSTS, namespace }, BOOST, { dryRun: true });
      return undefined;
    },
  };
}

/** Served by the same processes, so what is left is whether the API server may and can ask them. */
function podWebhookCheck({ client, webhookConfiguration: name }: CheckOptions): Check {
  return {
    name: 'webhook for pods',
    look: async () => {
      const [mutating, validating] = await Promise.all([
        client.get({ ...MUTATING_WEBHOOK_CONFIGURATIONS, name }),
        client.get({ ...VALIDATING_WEBHOOK_CONFIGURATIONS, name }),
      ]);
      if (isStopped(mutating))
        return 'revert-all has stopped it; revert-all --undo starts it again';
      const [bundles, others] = [caBundlesOf(mutating), caBundlesOf(validating)];
      if (bundles.length === 0) return `MutatingWebhookConfiguration ${name} has no webhook`;
      if (bundles.some((bundle) => bundle === '')) return 'its caBundle is still empty';
      const isSame = bundles.every((bundle) => others.includes(bundle));
      return isSame ? undefined : 'its caBundle is not that of the webhook for boosts';
    },
  };
}

/** By two looks: clocks need not agree. */
function controllerCheck({ client, namespace, lease: name }: CheckOptions): Check {
  let seen: string | undefined;
  return {
    name: 'controller',
    look: async () => {
      const lease = await found(client.get({ ...LEASES, namespace, name }));
      if (lease === undefined) {
        return `no Lease ${namespace}/${name}: POD_NAMESPACE has to be the namespace of the installation`;
      }
      const holder = textOf(fieldsOf(lease.spec).get('holderIdentity')) ?? '';
      if (holder === '') return `nobody holds the Lease ${namespace}/${name}`;
      const version = identityOf(lease)?.resourceVersion;
      const before = seen;
      seen = version;
      if (before === undefined) return `${holder} is to renew the Lease ${namespace}/${name}`;
      return before === version
        ? `${holder} does not renew the Lease ${namespace}/${name}`
        : undefined;
    },
  };
}

async function found(object: Promise<JsonObject>): Promise<JsonObject | undefined> {
  try {
    return await object;
  } catch (error) {
    if (error instanceof ApiError && error.failure.kind === 'NotFound') return undefined;
    throw error;
  }
}

function caBundlesOf(configuration: JsonObject): readonly string[] {
  return itemsOf(configuration.webhooks).map(
    (webhook) => textOf(fieldsOf(fieldsOf(webhook).get('clientConfig')).get('caBundle')) ?? '',
  );
}

/** The simplest one. */
const BOOST: JsonObject = {
  apiVersion: `${STARTUP_CPU_BOOST.group}/${STARTUP_CPU_BOOST.version}`,
  kind: STARTUP_CPU_BOOST.kind,
  metadata: { generateName: 'check-' },
  selector: {},
  spec: {
    resourcePolicy: {
      containerPolicies: [
        {
          matchContainers: { type: 'ExactName', value: 'app' },
          percentageIncrease: { value: 1 },
        },
      ],
    },
    durationPolicy: { fixedDuration: { unit: 'Seconds', value: 1 } },
  },
};
