/** What google/kube-startup-cpu-boost puts into a cluster, as far as it meets what we put there. */
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
