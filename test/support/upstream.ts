/** What google/kube-startup-cpu-boost puts into a cluster, as far as it meets what we put there. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { JsonObject } from '../../src/kube';

const QUANTITY = {
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
} as const;

const TEXT = { type: 'string' } as const;

const SELECTOR = {
  type: 'object',
  'x-kubernetes-map-type': 'atomic',
  properties: {
    matchLabels: { type: 'object', additionalProperties: TEXT },
    matchExpressions: {
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['key', 'operator'],
        properties: { key: TEXT, operator: TEXT, values: { type: 'array', items: TEXT } },
      },
    },
  },
} as const;

const POSITIVE = {
  type: 'object',
  required: ['value'],
  properties: { value: { type: 'integer', format: 'int64', minimum: 1 } },
} as const;

const SPEC = {
  type: 'object',
  required: ['durationPolicy'],
  properties: {
    durationPolicy: {
      type: 'object',
      properties: {
        fixedDuration: {
          type: 'object',
          required: ['unit', 'value'],
          properties: {
            unit: { type: 'string', enum: ['Seconds', 'Minutes'] },
            ...POSITIVE.properties,
          },
        },
        podCondition: { type: 'object', properties: { type: TEXT, status: TEXT } },
      },
    },
    resourcePolicy: {
      type: 'object',
      required: ['containerPolicies'],
      properties: {
        containerPolicies: {
          type: 'array',
          minItems: 1,
          items: {
            type: 'object',
            properties: {
              containerName: TEXT,
              matchContainers: {
                type: 'object',
                required: ['type', 'value'],
                properties: {
                  type: { type: 'string', enum: ['ExactName', 'RegexName'] },
                  value: TEXT,
                },
              },
              percentageIncrease: POSITIVE,
              fixedResources: {
                type: 'object',
                required: ['requests'],
                properties: { requests: QUANTITY, limits: QUANTITY },
              },
            },
          },
        },
      },
    },
  },
} as const;

const STATUS = {
  type: 'object',
  properties: {
    activeContainerBoosts: { type: 'integer', format: 'int32' },
    totalContainerBoosts: { type: 'integer', format: 'int32' },
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['lastTransitionTime', 'message', 'reason', 'status', 'type'],
        properties: {
          type: TEXT,
          status: TEXT,
          reason: TEXT,
          message: TEXT,
          lastTransitionTime: { type: 'string', format: 'date-time' },
          observedGeneration: { type: 'integer', format: 'int64' },
        },
      },
    },
  },
} as const;

/** Its CustomResourceDefinition, of release 0.21: no rules, no printer columns, no bounds. */
export function upstreamDefinition(metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'startupcpuboosts.autoscaling.x-k8s.io',
      annotations: { 'controller-gen.kubebuilder.io/version': 'v0.21.0' },
      ...metadata,
    },
    spec: {
      group: 'autoscaling.x-k8s.io',
      scope: 'Namespaced',
      names: {
        kind: 'StartupCPUBoost',
        listKind: 'StartupCPUBoostList',
        plural: 'startupcpuboosts',
        singular: 'startupcpuboost',
      },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                apiVersion: TEXT,
                kind: TEXT,
                metadata: { type: 'object' },
                selector: SELECTOR,
                spec: SPEC,
                status: STATUS,
              },
            },
          },
        },
      ],
    },
  };
}

/** The names that its chart gives, of a release of the name `upstream`. */
export const UPSTREAM = {
  release: 'upstream',
  namespace: 'upstream-system',
  service: 'upstream-kube-startup-cpu-boost-webhook-service',
  mutating: 'upstream-kube-startup-cpu-boost-mutating-webhook-configuration',
  validating: 'upstream-kube-startup-cpu-boost-validating-webhook-configuration',
  manager: 'kube-startup-cpu-boost-controller-manager',
} as const;

const LABELS = {
  'app.kubernetes.io/name': 'kube-startup-cpu-boost',
  'app.kubernetes.io/instance': UPSTREAM.release,
} as const;

/** A chart of the objects of its chart, with its CRD among the templates. */
export async function writeUpstreamChart(folder: string): Promise<string> {
  const path = join(folder, 'kube-startup-cpu-boost');
  await mkdir(join(path, 'templates'), { recursive: true });
  const chart = { apiVersion: 'v2', name: 'kube-startup-cpu-boost', version: '0.21.2' };
  await writeFile(join(path, 'Chart.yaml'), stringify(chart));
  const manifests = upstreamObjects().map((object) => stringify(object));
  await writeFile(join(path, 'templates', 'all.yaml'), manifests.join('---\n'));
  return path;
}

function upstreamObjects(): readonly JsonObject[] {
  const { namespace, service, manager } = UPSTREAM;
  const webhook = (name: string, path: string, failurePolicy: string): JsonObject => ({
    name,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy,
    clientConfig: { service: { name: service, namespace, path } },
  });
  const rule = (apiGroup: string, apiVersion: string, plural: string): JsonObject => ({
    apiGroups: [apiGroup],
    apiVersions: [apiVersion],
    resources: [plural],
    operations: apiGroup === '' ? ['CREATE'] : ['CREATE', 'UPDATE'],
  });
  const role = 'kube-startup-cpu-boost-manager-role';
  const matchLabels = { ...LABELS, 'control-plane': 'controller-manager' };
  return [
    upstreamDefinition({ labels: LABELS }),
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: manager, namespace, labels: LABELS },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: role, labels: LABELS },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'patch', 'watch'] }],
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: service, namespace, labels: LABELS },
      spec: { selector: matchLabels, ports: [{ port: 443, targetPort: 9443, protocol: 'TCP' }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: manager, namespace, labels: LABELS },
      spec: {
        selector: { matchLabels },
        template: {
          metadata: { labels: matchLabels },
          spec: {
            serviceAccountName: manager,
            containers: [{ name: 'manager', image: 'example/upstream:1', command: ['/manager'] }],
          },
        },
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: UPSTREAM.mutating, labels: LABELS },
      webhooks: [
        {
          ...webhook('cpuboost.autoscaling.x-k8s.io', '/mutate-v1-pod', 'Ignore'),
          timeoutSeconds: 2,
          rules: [rule('', 'v1', 'pods')],
        },
      ],
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: UPSTREAM.validating, labels: LABELS },
      webhooks: [
        {
          ...webhook(
            'vstartupcpuboost.autoscaling.x-k8s.io',
            '/validate-autoscaling-x-k8s-io-v1alpha1-startupcpuboost',
            'Fail',
          ),
          rules: [rule('autoscaling.x-k8s.io', 'v1alpha1', 'startupcpuboosts')],
        },
      ],
    },
  ];
}
