/** Values files that between them use every option of the chart, and releases with names that are hard to bear. */
import type { JsonObject } from '../../src/kube';
import type { Release } from './chart';

export const CA_PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

const EVERYWHERE = { nodeSelector: { 'kubernetes.io/arch': 'amd64' }, priorityClassName: 'high' };
const TOLERATION = { key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' };
const SPREAD = {
  maxSkew: 1,
  topologyKey: 'kubernetes.io/hostname',
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchLabels: { a: 'b' } },
};
const NODE_AFFINITY = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
    },
  },
};

const COMPONENT = {
  ...EVERYWHERE,
  replicas: 3,
  tolerations: [TOLERATION],
  affinity: NODE_AFFINITY,
  topologySpreadConstraints: [SPREAD],
  podAnnotations: { note: '1' },
  podLabels: { team: 'true', 'example.com/team': '8' },
  podDisruptionBudget: { enabled: true, maxUnavailable: '50%' },
  extraEnv: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=200' }],
  terminationGracePeriodSeconds: 60,
};

export const OPTIONS: Readonly<Record<string, JsonObject>> = {
  'the default values': {},
  'all of a component': {
    commonLabels: { 'example.com/team': '7' },
    image: {
      repository: 'localhost:5000/team/boost',
      tag: '1.2.3',
      digest: `sha256:${'a'.repeat(64)}`,
      pullPolicy: 'Always',
    },
    imagePullSecrets: [{ name: 'pull' }],
    admission: { ...COMPONENT, serviceAccount: { annotations: { a: 'b' } } },
    controller: { ...COMPONENT, serviceAccount: { name: 'mine', annotations: { a: 'b' } } },
  },
  'accounts that are there, and no budgets': {
    admission: {
      serviceAccount: { create: false, name: 'reader' },
      podDisruptionBudget: { enabled: false },
    },
    controller: {
      serviceAccount: { create: false, name: 'writer' },
      podDisruptionBudget: { enabled: false },
    },
  },
  'cert-manager': { certificates: { mode: 'cert-manager' } },
  'cert-manager with an issuer': {
    certificates: {
      mode: 'cert-manager',
      certManager: { issuerRef: { name: 'corporate', kind: 'ClusterIssuer' }, duration: '24h' },
    },
  },
  'a certificate that is provided': {
    certificates: { mode: 'provided', provided: { secretName: 'mine', caBundle: CA_PEM } },
  },
  'network policies': { networkPolicy: { enabled: true } },
  'network policies with limits': {
    networkPolicy: {
      enabled: true,
      metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
      apiServerCIDRs: ['10.0.0.1/32', 'fd00::/64'],
    },
  },
  'all of the monitoring': {
    monitoring: {
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, interval: '10s' },
      prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
      dashboard: { enabled: true, labels: { grafana_dashboard: '1' } },
    },
  },
  'other webhooks': {
    ports: { webhook: 10_250, health: 18_081, metrics: 18_080 },
    settings: { catchUp: false },
    webhook: {
      timeoutSeconds: 5,
      excludedNamespaces: ['kube-system', '1e3', 'null'],
      namespaceSelector: {
        matchLabels: { boost: 'true' },
        matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['system'] }],
      },
      objectSelector: { matchLabels: { boost: '1' } },
      hostNetwork: true,
    },
  },
  'other settings': {
    settings: {
      zapLogLevel: 'debug',
      boostGuaranteed: false,
      webhookDrainSeconds: 15,
      noControllerGraceSeconds: 0,
      allowPreemption: true,
      removeLimits: true,
      leaseDurationSeconds: 15,
      leaseRenewDeadlineSeconds: 10,
      leaseRetrySeconds: 2,
      mgrCheckInterval: 60,
      maximumBoostSeconds: 604_800,
      boostDeletedGraceSeconds: 0,
      unschedulableGraceMs: 3_600_000,
      revertAnyway: true,
      kubeletConfirmSeconds: 60,
      unlabelledCheckSeconds: 86_400,
      raiseInPlace: false,
      catchUp: false,
      catchUpSeconds: 86_400,
      catchUpBoostLagSeconds: 0,
      webhookDnsNames: ['a.example.com', '10.0.0.1'],
      caLifetimeSeconds: 315_360_000,
      servingLifetimeSeconds: 31_536_000,
      caPublishWaitSeconds: 0,
    },
  },
  'nothing that may be left out': {
    policies: { enabled: false },
    hooks: { applyCrd: false, revertAll: false },
  },
};

export const RELEASES: Readonly<Record<string, Release>> = {
  'a release by the name of the program': { name: 'startup-cpu-boost', namespace: 'boost' },
  'a release by the name of the chart': { name: 'kube-startup-cpu-boost', namespace: 'boost' },
  'a release by another name': { name: 'cpu', namespace: 'anything' },
  // Helm's own limit of a release's name.
  'a release with a long name': { name: `r${'-long'.repeat(10)}er`, namespace: 'n'.repeat(63) },
  'a long name that is cut at a hyphen': {
    name: `${'a'.repeat(42)}-${'b'.repeat(9)}`,
    namespace: 'boost',
  },
  'a name with dots': { name: '1.boost.v2', namespace: 'boost' },
  'names that YAML takes for numbers': { name: '1e3', namespace: '123' },
  'names that YAML takes for other things': { name: 'yes', namespace: 'null' },
  nameOverride: { name: 'cpu', namespace: 'boost', values: { nameOverride: '007' } },
  fullnameOverride: { namespace: 'boost', values: { fullnameOverride: 'true' } },
  'a fullnameOverride that is too long': {
    namespace: 'boost',
    values: { fullnameOverride: 'f'.repeat(63) },
  },
};
