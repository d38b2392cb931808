/** The one source of the StartupCPUBoost API: its schema, from which types, CRD and reference are derived. */

import type { Schema } from './schemaType';

export const STARTUP_CPU_BOOST = {
  group: 'autoscaling.x-k8s.io',
  version: 'v1alpha1',
  kind: 'StartupCPUBoost',
  listKind: 'StartupCPUBoostList',
  plural: 'startupcpuboosts',
  singular: 'startupcpuboost',
  shortName: 'scb',
} as const;

/**
 * Bounds on lists and strings: the API server estimates the cost of each CEL rule from them (10 million
 * units per rule, 100 million per definition), and the engine relies on them as the size of its work.
 */
export const LIMITS = {
  /** The name becomes a label value on boosted pods, and label values end at 63 characters. */
  nameLength: 63,
  /** Container names are DNS labels: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names */
  containerNameLength: 63,
  /** The engine's bound on a pattern; alternatives beyond it belong into several policies. */
  matchValueLength: 256,
  containerPolicies: 100,
  /** A DNS prefix of 253, a slash and a name of 63. */
  labelKeyLength: 317,
  labelValueLength: 63,
  selectorEntries: 50,
  selectorValues: 50,
  /** The longest canonical quantity has 20 characters; the rest is room for zeros people write. */
  quantityLength: 32,
  /** Takes 1m, the smallest request Kubernetes stores, to 10 CPU; what goes beyond is a slip. */
  percentage: 1_000_000,
  /** One day: no start takes longer, and every duration stays far from the ends of the number range. */
  durationSeconds: 86_400,
  durationMinutes: 1_440,
  /** The bound of metav1.Condition's type, which pod condition types follow. */
  conditionTypeLength: 316,
} as const;

const LABEL_KEY_RULE =
  'must be a label key: a name of up to 63 letters, digits, "-", "_" and ".", that begins and ends with a letter or digit, with an optional DNS prefix before a slash, such as app or example.com/app';

const labelValue = {
  type: 'string',
  maxLength: LIMITS.labelValueLength,
  'x-kubernetes-validations': [
    {
      rule: '!format.labelValue().validate(self).hasValue()',
      message:
        'a label value must be empty, or up to 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit',
    },
  ],
} as const;

const selector = {
  description:
    'Which pods of the namespace are boosted, by their labels. It stands beside spec. {} selects all pods of the namespace.',
  type: 'object',
  'x-kubernetes-map-type': 'atomic',
  properties: {
    matchLabels: {
      description: 'Labels that a pod must have with exactly these values. All of them must match.',
      type: 'object',
      maxProperties: LIMITS.selectorEntries,
      additionalProperties: labelValue,
      'x-kubernetes-validations': [
        {
          rule: 'self.all(key, !format.qualifiedName().validate(key).hasValue())',
          message: `each key of matchLabels ${LABEL_KEY_RULE}`,
        },
      ],
    },
    matchExpressions: {
      description: 'Requirements on labels of the pod. All of them must match.',
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      maxItems: LIMITS.selectorEntries,
      items: {
        type: 'object',
        required: ['key', 'operator'],
        properties: {
          key: {
            description: 'The label key that the requirement is about.',
            type: 'string',
            maxLength: LIMITS.labelKeyLength,
            'x-kubernetes-validations': [
              {
                rule: '!format.qualifiedName().validate(self).hasValue()',
                message: `key ${LABEL_KEY_RULE}`,
              },
            ],
          },
          operator: {
            description:
              'In: the label has one of the values. NotIn: it has none of them, or is absent. Exists, DoesNotExist: the label is there, or not, with any value.',
            type: 'string',
            enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'],
          },
          values: {
            description: 'The values for In and NotIn; left out for Exists and DoesNotExist.',
            type: 'array',
            'x-kubernetes-list-type': 'atomic',
            maxItems: LIMITS.selectorValues,
            items: labelValue,
          },
        },
        'x-kubernetes-validations': [
          {
            rule: "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
            message: 'values must have at least one entry when operator is In or NotIn',
          },
          {
            rule: "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
            message: 'values must be left out when operator is Exists or DoesNotExist',
          },
        ],
      },
    },
  },
} as const;

const CPU_EXAMPLES = 'such as 2, "0.5" or 500m';

const matchContainers = {
  description: 'Which containers of the pod the policy is for.',
  type: 'object',
  required: ['type', 'value'],
  properties: {
    type: {
      description:
        'ExactName: the container has this name. RegexName: the pattern is found in the name; ^ and $ tie it to the ends.',
      type: 'string',
      enum: ['ExactName', 'RegexName'],
    },
    value: {
      description:
        'The name, or a regular expression in RE2 syntax (https://github.com/google/re2/wiki/Syntax).',
      type: 'string',
      minLength: 1,
      maxLength: LIMITS.matchValueLength,
    },
  },
} as const;

const containerPolicy = {
  description:
    'What one kind of container gets. Exactly one of matchContainers and containerName, and exactly one of percentageIncrease and fixedResources.',
  type: 'object',
  properties: {
    containerName: {
      description:
        'Deprecated: write matchContainers with type ExactName. The name of the container the policy is for.',
      type: 'string',
      maxLength: LIMITS.containerNameLength,
    },
    matchContainers,
    percentageIncrease: {
      description: 'Raises the CPU request, and the CPU limit where there is one, by a percentage.',
      type: 'object',
      required: ['value'],
      properties: {
        value: {
          description: 'The increase in percent: 100 doubles the CPU.',
          type: 'integer',
          format: 'int64',
          minimum: 1,
          maximum: LIMITS.percentage,
        },
      },
    },
    fixedResources: {
      description:
        'Raises the CPU to these values. A container that already has as much or more keeps what it has.',
      type: 'object',
      required: ['requests'],
      properties: {
        requests: {
          description: `The CPU request during the boost, ${CPU_EXAMPLES}.`,
          'x-kubernetes-int-or-string': true,
          maxLength: LIMITS.quantityLength,
          'x-kubernetes-validations': [
            {
              rule: "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
              message: `requests must be a CPU quantity greater than 0, ${CPU_EXAMPLES}`,
            },
          ],
        },
        limits: {
          description: `The CPU limit during the boost, for containers that have a CPU limit, ${CPU_EXAMPLES}. Not below requests. 0 means the same as leaving it out.`,
          'x-kubernetes-int-or-string': true,
          maxLength: LIMITS.quantityLength,
          'x-kubernetes-validations': [
            {
              rule: "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
              message: `limits must be a CPU quantity, ${CPU_EXAMPLES}`,
            },
          ],
        },
      },
      'x-kubernetes-validations': [
        {
          // Programs that use Go types write an absent quantity as "0".
          rule: "!has(self.limits) || !isQuantity(string(self.limits)) || !isQuantity(string(self.requests)) || quantity(string(self.limits)).compareTo(quantity('0')) <= 0 || !quantity(string(self.limits)).isLessThan(quantity(string(self.requests)))",
          message: 'limits must not be lower than requests',
          fieldPath: '.limits',
        },
      ],
    },
  },
  'x-kubernetes-validations': [
    {
      // An empty containerName is how a program that uses Go types may write an absent one.
      rule: "has(self.matchContainers) != (has(self.containerName) && self.containerName != '')",
      message:
        'exactly one of matchContainers and containerName must be set; containerName is deprecated',
    },
    {
      rule: 'has(self.percentageIncrease) != has(self.fixedResources)',
      message: 'exactly one of percentageIncrease and fixedResources must be set',
    },
  ],
} as const;

const durationPolicy = {
  description:
    'When the boost ends. At least one of fixedDuration and podCondition; with both, whichever comes first.',
  type: 'object',
  properties: {
    fixedDuration: {
      description: 'Ends the boost so long after the pod was scheduled.',
      type: 'object',
      required: ['unit', 'value'],
      properties: {
        unit: {
          description: 'The unit of value.',
          type: 'string',
          enum: ['Seconds', 'Minutes'],
        },
        value: {
          description: 'How many units the boost lasts, at most a day.',
          type: 'integer',
          format: 'int64',
          minimum: 1,
          maximum: LIMITS.durationSeconds,
        },
      },
      'x-kubernetes-validations': [
        {
          rule: `self.unit != 'Minutes' || self.value <= ${LIMITS.durationMinutes}`,
          message: `value must be at most ${LIMITS.durationMinutes} when unit is Minutes: a boost lasts at most a day`,
          fieldPath: '.value',
        },
      ],
    },
    podCondition: {
      description: 'Ends the boost when a condition of the pod has a status.',
      type: 'object',
      required: ['type', 'status'],
      properties: {
        type: {
          description: 'The type of the pod condition, such as Ready or ContainersReady.',
          type: 'string',
          minLength: 1,
          maxLength: LIMITS.conditionTypeLength,
        },
        status: {
          description: 'The status that ends the boost.',
          type: 'string',
          enum: ['True', 'False', 'Unknown'],
        },
      },
    },
  },
  'x-kubernetes-validations': [
    {
      rule: 'has(self.fixedDuration) || has(self.podCondition)',
      message: 'at least one of fixedDuration and podCondition must be set',
    },
  ],
} as const;

const spec = {
  description: 'What the selected pods get, and for how long.',
  type: 'object',
  required: ['resourcePolicy', 'durationPolicy'],
  properties: {
    selector: {
      // Undeclared it would be pruned before any rule sees it, and the boost would have no selector.
      description: 'Not a field: it is declared only to be refused. Write selector beside spec.',
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
    },
    resourcePolicy: {
      description: 'How much CPU the containers get.',
      type: 'object',
      required: ['containerPolicies'],
      properties: {
        containerPolicies: {
          description: 'For each container the first policy that matches its name counts.',
          type: 'array',
          'x-kubernetes-list-type': 'atomic',
          minItems: 1,
          maxItems: LIMITS.containerPolicies,
          items: containerPolicy,
          'x-kubernetes-validations': [
            {
              // A pattern that does not compile makes both sides an error, and an error fails the rule with its
              // reason. Errors are not forgiven on an unchanged value as other violations are; oldSelf does that.
              rule: "(oldSelf.hasValue() && oldSelf.value() == self) || self.all(policy, !has(policy.matchContainers) || policy.matchContainers.type != 'RegexName' || ''.matches(policy.matchContainers.value) || !''.matches(policy.matchContainers.value))",
              message:
                'matchContainers.value must be a regular expression in RE2 syntax when type is RegexName',
              optionalOldSelf: true,
            },
          ],
        },
        cpuLimits: {
          description:
            "What becomes of the containers' CPU limits: Raise raises them as the requests, Remove takes them away at creation and puts them back at the end of the boost, Keep leaves them. Where a limit cannot be removed (the pod's QoS class would change, a LimitRange gives CPU limits, the pod is raised in place) it is raised instead, and one that a ResourceQuota counts is kept. Unless set, the setting REMOVE_LIMITS decides between Raise and Remove.",
          type: 'string',
          enum: ['Raise', 'Remove', 'Keep'],
        },
      },
    },
    durationPolicy,
    allowPreemption: {
      description:
        'Boosts pods at creation also where their priority lets the scheduler remove other pods to make room. Unless true, such pods are raised in place once they are on a node.',
      type: 'boolean',
    },
  },
  'x-kubernetes-validations': [
    {
      rule: '!has(self.selector)',
      message:
        'spec.selector is in the wrong place: move it to the top level of the manifest, beside spec',
      fieldPath: '.selector',
      reason: 'FieldValueForbidden',
    },
  ],
} as const;

const count = (description: string) =>
  ({ description, type: 'integer', format: 'int32', minimum: 0 }) as const;

const status = {
  description: 'What the controller saw. Only the controller writes it.',
  type: 'object',
  properties: {
    observedGeneration: {
      description: 'The metadata.generation of the boost that this status is about.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
    activeContainerBoosts: count('Containers whose CPU is raised now.'),
    totalContainerBoosts: count(
      'Containers whose CPU was raised so far. At least: a controller that dies may lose the last ones. It never goes down.',
    ),
    boostedPods: count('Pods that were boosted so far. At least, and never going down.'),
    revertedPods: count('How many of boostedPods have their original CPU back, or are gone.'),
    stuckPods: count(
      "Pods whose CPU should go back and could not; the controller's log and the metric startup_cpu_boost_stuck_pods say why.",
    ),
    policy: {
      description:
        'The resource policies in short: +100% for a percentage, 2/3 for fixed requests and limits; separated by commas.',
      type: 'string',
      maxLength: 1024,
    },
    until: {
      description: 'The duration policy in short: Ready, 60s, or Ready|60s for both.',
      type: 'string',
      maxLength: 1024,
    },
    conditions: {
      description: 'The state of the boost, one entry per type.',
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      maxItems: 16,
      items: {
        type: 'object',
        required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
        properties: {
          type: {
            description: 'What the condition is about.',
            type: 'string',
            maxLength: LIMITS.conditionTypeLength,
            pattern:
              '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
          },
          status: {
            description: 'Whether the condition holds.',
            type: 'string',
            enum: ['True', 'False', 'Unknown'],
          },
          observedGeneration: {
            description: 'The metadata.generation that the condition was judged by.',
            type: 'integer',
            format: 'int64',
            minimum: 0,
          },
          reason: {
            description: 'Why, as one word for programs.',
            type: 'string',
            minLength: 1,
            maxLength: 1024,
            pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
          },
          message: {
            description: 'Why, as a sentence for people.',
            type: 'string',
            maxLength: 32768,
          },
          lastTransitionTime: {
            description: 'When status last changed.',
            type: 'string',
            format: 'date-time',
          },
        },
      },
    },
  },
} as const;

/**
 * Rules at the root run again whenever anything in the object changes, the status included. A boost that an
 * older definition let in must still take its status, so these two let pass what was there before.
 */
const rootRules = [
  {
    rule: `self.metadata.name.size() <= ${LIMITS.nameLength} || oldSelf.hasValue()`,
    message: `metadata.name must have at most ${LIMITS.nameLength} characters: it becomes a label value on boosted pods`,
    optionalOldSelf: true,
  },
  {
    rule: 'has(self.selector) || has(self.spec.selector) || (oldSelf.hasValue() && !has(oldSelf.value().selector))',
    message:
      'selector is required at the top level of the manifest, beside spec; {} selects all pods of the namespace',
    reason: 'FieldValueRequired',
    optionalOldSelf: true,
  },
] as const;

export const startupCpuBoostSchema = {
  description:
    'Raises the CPU of containers while they start, and gives the original back without a restart.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: {
      description: `${STARTUP_CPU_BOOST.group}/${STARTUP_CPU_BOOST.version}`,
      type: 'string',
    },
    kind: { description: STARTUP_CPU_BOOST.kind, type: 'string' },
    metadata: { type: 'object' },
    selector,
    spec,
    status,
  },
  'x-kubernetes-validations': rootRules,
} as const satisfies Schema;
