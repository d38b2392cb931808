/** Finds out whether an installation works: the webhooks answer, and a controller acts. */
import { fieldsOf, itemsOf, textOf } from '../boost-engine';
import { isStopped } from '../controller';
import {
  ApiError,
  LEASES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  identityOf,
  ifThere,
  sleep,
} from '../kube';
import type { Clock, JsonObject, KubeClient, ObjectRef, ResourceRef } from '../kube';
import { POD_WEBHOOK, STARTUP_CPU_BOOST } from '../resources';

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

/** Of the ValidatingWebhookConfiguration. */
const BOOST_WEBHOOK = 'vstartupcpuboost.autoscaling.x-k8s.io';

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
      const webhook = webhookOf(
        await client.get({ ...VALIDATING_WEBHOOK_CONFIGURATIONS, name }),
        BOOST_WEBHOOK,
      );
      if (webhook === undefined) return `${name} has no webhook ${BOOST_WEBHOOK}`;
      if (!asksAbout(webhook, STARTUP_CPU_BOOSTS)) return 'no rule of it is for new boosts';
      if (webhook.get('failurePolicy') !== 'Fail') {
        return 'its failurePolicy is not Fail, so that boosts are stored unseen';
      }
      await client.create({ ...STARTUP_CPU_BOOSTS, namespace }, BOOST, { dryRun: true });
      return undefined;
    },
  };
}

/** Served by the same processes, so what is left is whether the API server asks them, and can. */
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
      const webhook = webhookOf(mutating, POD_WEBHOOK.name);
      if (webhook === undefined) return `${name} has no webhook ${POD_WEBHOOK.name}`;
      if (!asksAbout(webhook, PODS)) return 'no rule of it is for new pods';
      if (webhook.get('failurePolicy') !== 'Ignore') {
        return 'its failurePolicy is not Ignore, so that no pod can be created while admission is away';
      }
      const own = targetOf(webhook);
      const other = targetOf(webhookOf(validating, BOOST_WEBHOOK) ?? new Map());
      if (own.path !== POD_WEBHOOK.path) return `its path is not ${POD_WEBHOOK.path}`;
      if (own.server !== other.server) return 'it leads elsewhere than the webhook for boosts';
      if (own.caBundle === '') return 'its caBundle is still empty';
      if (own.caBundle !== other.caBundle) {
        return 'its caBundle is not that of the webhook for boosts';
      }
      return undefined;
    },
  };
}

/** By two looks: clocks need not agree. Between two renewals nothing is wrong. */
function controllerCheck({ client, clock, namespace, lease: name }: CheckOptions): Check {
  let seen: string | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'controller',
    look: async () => {
      const lease = await ifThere(client.get({ ...LEASES, namespace, name }));
      if (lease === undefined) {
        return `no Lease ${namespace}/${name}: POD_NAMESPACE has to be the namespace of the installation`;
      }
      const spec = fieldsOf(lease.spec);
      const holder = textOf(spec.get('holderIdentity')) ?? '';
      if (holder === '') return `nobody holds the Lease ${namespace}/${name}`;
      const before = seen;
      seen = identityOf(lease)?.resourceVersion;
      if (before === undefined) return `${holder} is to renew the Lease ${namespace}/${name}`;
      if (seen !== before) renewedAt = clock.monotonic();
      const isHeld =
        clock.monotonic() - renewedAt < Number(spec.get('leaseDurationSeconds')) * 1_000;
      return isHeld ? undefined : `${holder} does not renew the Lease ${namespace}/${name}`;
    },
  };
}

type Webhook = ReturnType<typeof fieldsOf>;

function webhookOf(configuration: JsonObject, name: string): Webhook | undefined {
  return itemsOf(configuration.webhooks)
    .map(fieldsOf)
    .find((webhook) => webhook.get('name') === name);
}

/** Whether a rule has the API server ask about new ones. */
function asksAbout(webhook: Webhook, { group, version, plural }: ResourceRef): boolean {
  return itemsOf(webhook.get('rules')).some((rule) => {
    const fields = fieldsOf(rule);
    const has = (key: string, value: string): boolean =>
      itemsOf(fields.get(key)).some((each) => each === value || each === '*');
    return (
      has('apiGroups', group) &&
      has('apiVersions', version) &&
      has('resources', plural) &&
      has('operations', 'CREATE')
    );
  });
}

/** Where it leads, and whom the API server trusts there. */
function targetOf(webhook: Webhook): {
  readonly server: string;
  readonly path: string;
  readonly caBundle: string;
} {
  const clientConfig = fieldsOf(webhook.get('clientConfig'));
  const caBundle = textOf(clientConfig.get('caBundle')) ?? '';
  const url = textOf(clientConfig.get('url'));
  if (url !== undefined && URL.canParse(url)) {
    const { origin, pathname } = new URL(url);
    return { server: origin, path: pathname, caBundle };
  }
  const service = fieldsOf(clientConfig.get('service'));
  const at = (key: string): unknown => service.get(key);
  const server = JSON.stringify([at('namespace'), at('name'), at('port')]);
  return { server, path: textOf(at('path')) ?? '', caBundle };
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
