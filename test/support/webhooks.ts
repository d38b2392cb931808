/** The two webhook configurations, for servers that are reached by URL and not by a Service. */
import type { JsonObject, KubeClient, ResourceRef } from '../../src/kube';

export interface WebhookTarget {
  /** Where admission listens, such as `https://127.0.0.1:9443`. */
  readonly url: string;
  /** PEM of the CA that signed its certificate; without it, a controller fills it in. */
  readonly caBundle?: string;
  /** Only these namespaces; without it all but the cluster's own. */
  readonly namespaces?: readonly string[];
}

export interface WebhookConfigurations {
  readonly mutating: JsonObject;
  readonly validating: JsonObject;
}

/** Of both configurations. */
const NAME = 'startup-cpu-boost';

const NAMESPACE_LABEL = 'kubernetes.io/metadata.name';
const NEVER = ['kube-system', 'kube-node-lease'];

/** Creates both configurations, or points those that are there at another server. */
export async function installWebhooks(client: KubeClient, target: WebhookTarget): Promise<void> {
  const { mutating, validating } = webhookConfigurations(target);
  await apply(client, 'mutatingwebhookconfigurations', mutating);
  await apply(client, 'validatingwebhookconfigurations', validating);
}

/** The one for pods alone: boosts are stored whether its server runs or not. */
export async function installPodWebhook(client: KubeClient, target: WebhookTarget): Promise<void> {
  await apply(client, 'mutatingwebhookconfigurations', webhookConfigurations(target).mutating);
}

async function apply(client: KubeClient, plural: string, body: JsonObject): Promise<void> {
  const resource: ResourceRef = { group: 'admissionregistration.k8s.io', version: 'v1', plural };
  const ref = { ...resource, name: NAME };
  await client.patch(ref, { type: 'apply', body, fieldManager: 'startup-cpu-boost-tests' });
}

/**
 * `matchConditions` are fixed text, never made from boosts: the API server compiles them again at
 * each change, and an error in one would leave pods out without a trace.
 */
export function webhookConfigurations(target: WebhookTarget): WebhookConfigurations {
  const clientConfig = (path: string): JsonObject => ({
    url: target.url + path,
    ...(target.caBundle === undefined
      ? {}
      : { caBundle: Buffer.from(target.caBundle).toString('base64') }),
  });
  return {
    mutating: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: NAME },
      webhooks: [
        {
          name: 'cpuboost.autoscaling.x-k8s.io',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Ignore',
          matchPolicy: 'Equivalent',
          reinvocationPolicy: 'IfNeeded',
          timeoutSeconds: 2,
          rules: [rule({ group: '', version: 'v1', plural: 'pods' }, ['CREATE'])],
          namespaceSelector: { matchExpressions: [namespaceExpression(target.namespaces)] },
          matchConditions: [
            {
              name: 'not-a-mirror-pod',
              expression:
                "!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)",
            },
          ],
          clientConfig: clientConfig('/mutate-v1-pod'),
        },
      ],
    },
    validating: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: NAME },
      webhooks: [
        {
          name: 'vstartupcpuboost.autoscaling.x-k8s.io',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          timeoutSeconds: 5,
          rules: [
            rule(
              { group: 'autoscaling.x-k8s.io', version: 'v1alpha1', plural: 'startupcpuboosts' },
              ['CREATE', 'UPDATE'],
            ),
          ],
          clientConfig: clientConfig('/validate-autoscaling-x-k8s-io-v1alpha1-startupcpuboost'),
        },
      ],
    },
  };
}

function rule(
  resource: { readonly group: string; readonly version: string; readonly plural: string },
  operations: readonly string[],
): JsonObject {
  return {
    apiGroups: [resource.group],
    apiVersions: [resource.version],
    resources: [resource.plural],
    operations,
    scope: 'Namespaced',
  };
}

function namespaceExpression(namespaces: readonly string[] | undefined): JsonObject {
  return namespaces === undefined
    ? { key: NAMESPACE_LABEL, operator: 'NotIn', values: NEVER }
    : { key: NAMESPACE_LABEL, operator: 'In', values: namespaces };
}
