/** What the chart renders: for every option, under any name, in any namespace. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import {
  VARIABLES,
  parseAdmissionSettings,
  parseApplyCrdSettings,
  parseCheckSettings,
  parseControllerSettings,
  parseRevertAllSettings,
} from '../../src/cli/settings';
import type { JsonObject } from '../../src/kube';
import { createMetrics } from '../../src/observability';
import { CHART, askChart, lintChart, templateChart } from '../support/chart';
import type { Release } from '../support/chart';
import { CA_PEM, OPTIONS, RELEASES } from '../support/chartOptions';
import { listAt, objectAt, objectOf, textAt, textsAt } from '../support/objectAt';
import {
  COMPONENTS,
  below,
  containerOf,
  deploymentOf,
  environmentOf,
  nameOf,
  ofKind,
  onlyOne,
  podOf,
} from '../support/release';
import type { Component } from '../support/release';
import { webhookConfigurations } from '../support/webhooks';

const MUTATING = 'MutatingWebhookConfiguration';
const VALIDATING = 'ValidatingWebhookConfiguration';

const PARSERS = { admission: parseAdmissionSettings, controller: parseControllerSettings };

const COMMANDS = [
  { command: 'revert-all', parser: parseRevertAllSettings },
  { command: 'apply-crd', parser: parseApplyCrdSettings },
  { command: 'check', parser: parseCheckSettings },
] as const;

const optionCases: readonly (readonly [string, Release])[] = Object.entries(OPTIONS).map(
  ([what, values]) => [what, { namespace: 'boost', values }],
);
const cases = [...optionCases, ...Object.entries(RELEASES)];

/** Helm renders each of them once. */
const rendered = new Map<string, readonly JsonObject[]>();

beforeAll(async () => {
  for (const [what, release] of cases) rendered.set(what, await templateChart(release));
}, 300_000);

function objectsOf(what: string): readonly JsonObject[] {
  return rendered.get(what) ?? [];
}

const byDefault = (): readonly JsonObject[] => objectsOf('the default values');

describe.each(cases)('%s', (what, release) => {
  const { namespace = 'default' } = release;

  it('passes helm lint --strict', async () => {
    expect(await lintChart(release)).toMatchObject({ code: 0 });
  });

  it('has names and labels that Kubernetes takes, each once', () => {
    const names = objectsOf(what).map((object) => `${String(object.kind)} ${nameOf(object)}`);
    expect(new Set(names).size).toBe(names.length);
    for (const object of objectsOf(what)) {
      expect(nameOf(object)).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/);
      for (const [key, value] of labelsOf(object)) {
        expect([key, value]).toEqual([key, expect.stringMatching(/^([\w.-]{0,62}\w)?$/)]);
      }
    }
  });

  it('stays in its namespace, and says on everything whose it is', () => {
    for (const object of objectsOf(what)) {
      const { namespace: own = namespace } = objectAt(object, 'metadata');
      expect(own).toBe(namespace);
      const { name = 'startup-cpu-boost' } = release;
      expect(new Map(labelsOf(object)).get('app.kubernetes.io/instance')).toBe(name);
    }
  });

  it('selects with each selector the pods of one Deployment, all of them and no other', () => {
    const objects = objectsOf(what);
    const pods = [
      ...ofKind(objects, 'Deployment'),
      ...ofKind(objects, 'Job'),
      ...ofKind(objects, 'Pod'),
    ];
    const selectors = objects.flatMap(selectorsOf);
    expect(selectors.length).toBeGreaterThanOrEqual(5);
    for (const { component, labels } of selectors) {
      const selected = pods.filter((pod) => {
        const own = new Map(Object.entries(below(podOf(pod), 'metadata', 'labels')));
        return Object.entries(labels).every(([key, value]) => own.get(key) === value);
      });
      expect(selected.map(nameOf)).toEqual([nameOf(deploymentOf(objects, component))]);
    }
  });

  it('leads the API server to a port of admission by its Service', () => {
    const objects = objectsOf(what);
    for (const kind of [MUTATING, VALIDATING]) {
      for (const webhook of listAt(onlyOne(objects, kind), 'webhooks')) {
        const target = below(webhook, 'clientConfig', 'service');
        const service = objects.find(
          (object) => object.kind === 'Service' && nameOf(object) === textAt(target, 'name'),
        );
        expect(target.namespace).toBe(namespace);
        const ports = listAt(below(service ?? {}, 'spec'), 'ports');
        expect(ports).toEqual([expect.objectContaining({ port: target.port })]);
        const container = containerOf(deploymentOf(objects, 'admission'));
        expect(listAt(container, 'ports')).toContainEqual({
          name: textAt(ports[0] ?? {}, 'targetPort'),
          containerPort: Number(environment(what, 'admission').WEBHOOK_PORT),
        });
      }
    }
  });

  it('tells the programs the names that its objects have', () => {
    const objects = objectsOf(what);
    const env = environment(what, 'controller');
    expect(env.POD_NAMESPACE).toBe(namespace);
    expect(environment(what, 'admission').POD_NAMESPACE).toBe(namespace);
    expect(nameOf(onlyOne(objects, MUTATING))).toBe(env.WEBHOOK_CONFIGURATION);
    expect(nameOf(onlyOne(objects, VALIDATING))).toBe(env.WEBHOOK_CONFIGURATION);
    const secrets = ofKind(objects, 'Secret').map(nameOf).sort();
    if (env.CERT_MODE === 'self-managed') {
      expect(secrets).toEqual([env.CA_SECRET, env.SERVING_SECRET].sort());
      expect(environment(what, 'admission').SERVING_SECRET).toBe(env.SERVING_SECRET);
      expect(ofKind(objects, 'Service').map(nameOf)).toContain(env.WEBHOOK_SERVICE);
    } else {
      expect(secrets).toEqual([]);
    }
    for (const secret of ofKind(objects, 'Secret')) {
      expect(Object.keys(secret)).not.toEqual(expect.arrayContaining(['data']));
    }
  });

  it('binds each account that it makes or is given to rights that are there', () => {
    const objects = objectsOf(what);
    const roles = [...ofKind(objects, 'Role'), ...ofKind(objects, 'ClusterRole')];
    const bindings = [...ofKind(objects, 'RoleBinding'), ...ofKind(objects, 'ClusterRoleBinding')];
    expect(bindings).toHaveLength(roles.length);
    const accounts = objects
      .map((object) => textAt(below(podOf(object), 'spec'), 'serviceAccountName'))
      .filter((name) => name !== '');
    for (const binding of bindings) {
      const { kind, name } = objectAt(binding, 'roleRef');
      expect(roles.filter((role) => role.kind === kind && nameOf(role) === name)).toHaveLength(1);
      for (const subject of listAt(binding, 'subjects')) {
        expect(subject).toMatchObject({ kind: 'ServiceAccount', namespace });
        expect(accounts).toContain(subject.name);
      }
    }
  });

  it.each(COMPONENTS)('gives %s settings that it knows and takes', (component) => {
    const env = environment(what, component);
    const known: readonly string[] = [...VARIABLES[component], 'NODE_OPTIONS'];
    expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
    expect(PARSERS[component](env)).toMatchObject({ kind: 'Settings', warnings: [] });
  });

  it.each(COMMANDS)('gives $command settings that it knows and takes', ({ command, parser }) => {
    const workload = objectsOf(what).find(
      (each) =>
        nameOf(each).endsWith(`-${command}`) && ['Job', 'Pod'].includes(textAt(each, 'kind')),
    );
    const env = environmentOf(workload ?? {});
    const known: readonly string[] = VARIABLES[command];
    expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
    expect(parser(env)).toMatchObject({ kind: 'Settings', warnings: [] });
  });

  it.each(COMPONENTS)('lets %s finish before it is killed', (component) => {
    const pod = below(podOf(deploymentOf(objectsOf(what), component)), 'spec');
    const drain = Number(environment(what, component).WEBHOOK_DRAIN_SECONDS ?? 0);
    // FINISH_TIMEOUT_MS of the admission server comes after the drain.
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drain + 10);
  });
});

describe('by default', () => {
  it.each(COMPONENTS)('%s does what the program does by itself', (component) => {
    const env = environment('the default values', component);
    const {
      POD_NAMESPACE = '',
      WEBHOOK_CONFIGURATION = '',
      CA_SECRET = '',
      SERVING_SECRET = '',
      WEBHOOK_SERVICE = '',
    } = env;
    const names = {
      POD_NAMESPACE,
      WEBHOOK_CONFIGURATION,
      CA_SECRET,
      SERVING_SECRET,
      WEBHOOK_SERVICE,
    };
    expect(PARSERS[component](env)).toEqual(PARSERS[component](names));
  });

  it.each(COMPONENTS)(
    '%s has two replicas, of which a rollout never takes one away',
    (component) => {
      const spec = objectAt(deploymentOf(byDefault(), component), 'spec');
      expect(spec).toMatchObject({
        replicas: 2,
        strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      });
    },
  );

  it('has replicas apart where that is possible, and runs them where it is not', () => {
    for (const component of COMPONENTS) {
      const { affinity, topologySpreadConstraints } = below(
        podOf(deploymentOf(byDefault(), component)),
        'spec',
      );
      const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
      expect(Object.keys(objectOf(objectOf(affinity).podAntiAffinity))).toEqual([preferred]);
      expect(topologySpreadConstraints).toEqual([
        expect.objectContaining({ whenUnsatisfiable: 'ScheduleAnyway' }),
        expect.objectContaining({ whenUnsatisfiable: 'ScheduleAnyway' }),
      ]);
    }
  });
});

describe('the settings', () => {
  /** What the chart decides by itself, and what makes no sense in a pod of its. */
  const OF_THE_CHART = [
    'CATCH_UP_EXCLUDED_NAMESPACES',
    'CA_SECRET',
    'CERT_DIR',
    'CERT_MODE',
    'HEALTH_PROBE_BIND_ADDR',
    'KUBECONFIG',
    // Several controllers without an election would all act.
    'LEADER_ELECTION',
    'METRICS_PROBE_BIND_ADDR',
    'POD_NAMESPACE',
    'SERVING_SECRET',
    'WEBHOOK_BIND_ADDR',
    'WEBHOOK_CONFIGURATION',
    'WEBHOOK_PORT',
    'WEBHOOK_SERVICE',
  ];

  it('have a value for each variable of the programs that is not the chart’s own', () => {
    const set = new Set(
      COMPONENTS.flatMap((each) => Object.keys(environment('the default values', each))),
    );
    const all = new Set([...VARIABLES.admission, ...VARIABLES.controller]);
    const bySettings = [...all].filter((name) => !OF_THE_CHART.includes(name));
    expect(bySettings.filter((name) => !set.has(name))).toEqual([]);
    expect(bySettings).toHaveLength(Object.keys(objectAt(chartValues(), 'settings')).length);
  });

  it('all get to their program as they are written', () => {
    const before = COMPONENTS.map((each) => environment('the default values', each));
    const after = COMPONENTS.map((each) => environment('other settings', each));
    const same = after.flatMap((env, index) =>
      Object.entries(env).flatMap(([name, value]) =>
        before[index]?.[name] === value && !OF_THE_CHART.includes(name) ? [name] : [],
      ),
    );
    expect(same).toEqual([]);
    expect(after[1]).toMatchObject({
      CA_LIFETIME_SECONDS: '315360000',
      CATCH_UP: 'false',
      WEBHOOK_DNS_NAMES: 'a.example.com,10.0.0.1',
    });
  });
});

describe('the webhook configurations', () => {
  it('are those that all other tests use, but for where they lead and the namespace of the release', () => {
    const { mutating, validating } = webhookConfigurations({ url: 'https://there' });
    const [chartMutating, chartValidating] = [MUTATING, VALIDATING].map((kind) =>
      withoutTarget(onlyOne(byDefault(), kind)),
    );
    expect(chartValidating).toEqual(withoutTarget(validating));
    const [webhook = {}] = withoutTarget(mutating);
    expect(chartMutating).toEqual([
      {
        ...webhook,
        namespaceSelector: {
          matchExpressions: [
            {
              key: 'kubernetes.io/metadata.name',
              operator: 'NotIn',
              values: ['kube-system', 'kube-node-lease', 'boost'],
            },
          ],
        },
      },
    ]);
  });

  it.each(cases)(
    'never refuse a pod, nor wait long, nor look at our own ones: %s',
    (what, release) => {
      const [webhook = {}] = listAt(onlyOne(objectsOf(what), MUTATING), 'webhooks');
      expect(webhook).toMatchObject({ failurePolicy: 'Ignore', reinvocationPolicy: 'IfNeeded' });
      expect(webhook.timeoutSeconds).toBeLessThanOrEqual(5);
      const excluded = listAt(objectAt(webhook, 'namespaceSelector'), 'matchExpressions').filter(
        ({ key, operator }) => key === 'kubernetes.io/metadata.name' && operator === 'NotIn',
      );
      expect(excluded.flatMap((each) => textsAt(each, 'values'))).toEqual(
        expect.arrayContaining(['kube-system', 'kube-node-lease', release.namespace ?? 'default']),
      );
    },
  );

  it('and the controllers leave the same namespaces out', () => {
    const env = environment('other webhooks', 'controller');
    expect(env.CATCH_UP_EXCLUDED_NAMESPACES).toBe('kube-system,kube-node-lease,1e3,null');
    const [webhook = {}] = listAt(onlyOne(objectsOf('other webhooks'), MUTATING), 'webhooks');
    expect(webhook.namespaceSelector).toEqual({
      matchLabels: { boost: 'true' },
      matchExpressions: [
        {
          key: 'kubernetes.io/metadata.name',
          operator: 'NotIn',
          values: ['kube-system', 'kube-node-lease', '1e3', 'null', 'boost'],
        },
        { key: 'tier', operator: 'NotIn', values: ['system'] },
      ],
    });
  });

  function withoutTarget(configuration: JsonObject): readonly JsonObject[] {
    return listAt(configuration, 'webhooks').map((webhook) =>
      Object.fromEntries(Object.entries(webhook).filter(([key]) => key !== 'clientConfig')),
    );
  }
});

describe('a certificate', () => {
  it('of cert-manager is for the Service, is mounted, and its CA gets into both configurations', () => {
    const objects = objectsOf('cert-manager');
    const certificate = ofKind(objects, 'Certificate').find(
      ({ spec }) => !('isCA' in objectOf(spec)),
    );
    expect(objectAt(certificate ?? {}, 'spec')).toMatchObject({
      dnsNames: expect.arrayContaining(['startup-cpu-boost-webhook.boost.svc']),
      issuerRef: { name: 'startup-cpu-boost-ca' },
    });
    expect(ofKind(objects, 'Issuer').map(nameOf)).toContain('startup-cpu-boost-ca');
    for (const kind of [MUTATING, VALIDATING]) {
      expect(below(onlyOne(objects, kind), 'metadata', 'annotations')).toEqual({
        'cert-manager.io/inject-ca-from': `boost/${nameOf(certificate ?? {})}`,
      });
    }
    expectMounted(objects, textAt(objectAt(certificate ?? {}, 'spec'), 'secretName'));
  });

  it('of another issuer needs none of ours', () => {
    const objects = objectsOf('cert-manager with an issuer');
    expect(ofKind(objects, 'Issuer')).toEqual([]);
    expect(objectAt(onlyOne(objects, 'Certificate'), 'spec')).toMatchObject({
      issuerRef: { name: 'corporate', kind: 'ClusterIssuer' },
    });
  });

  it('that is provided is mounted, and its CA stands in both configurations', () => {
    const objects = objectsOf('a certificate that is provided');
    expectMounted(objects, 'mine');
    for (const kind of [MUTATING, VALIDATING]) {
      const [webhook = {}] = listAt(onlyOne(objects, kind), 'webhooks');
      const caBundle = textAt(objectAt(webhook, 'clientConfig'), 'caBundle');
      expect(Buffer.from(caBundle, 'base64').toString()).toBe(CA_PEM);
    }
  });

  it('of the controllers alone gives anybody a right on Secrets', () => {
    const withRights = cases.filter(([what]) =>
      [...ofKind(objectsOf(what), 'Role'), ...ofKind(objectsOf(what), 'ClusterRole')].some((role) =>
        listAt(role, 'rules').some((rule) => textsAt(rule, 'resources').includes('secrets')),
      ),
    );
    const selfManaged = cases.filter(
      ([what]) => environment(what, 'controller').CERT_MODE === 'self-managed',
    );
    expect(withRights).toEqual(selfManaged);
  });

  function expectMounted(objects: readonly JsonObject[], secretName: string): void {
    const deployment = deploymentOf(objects, 'admission');
    const [volume = {}] = listAt(below(podOf(deployment), 'spec'), 'volumes');
    expect(volume).toMatchObject({ secret: { secretName } });
    expect(listAt(containerOf(deployment), 'volumeMounts')).toEqual([
      { name: volume.name, mountPath: environmentOf(deployment).CERT_DIR, readOnly: true },
    ]);
  }
});

describe('the chart refuses', () => {
  const schemaCases: readonly (readonly [JsonObject, string])[] = [
    ...objectPathsOf(chartValues()).map((path): readonly [JsonObject, string] => [
      nested(path, { nonsense: 1 }),
      "'nonsense' not allowed",
    ]),
    // As `--set KEY=null` does, and `KEY:` with nothing below it, or values kept from an older chart.
    ...filledPathsOf(chartValues()).map((path): readonly [JsonObject, string] => [
      nested(path.slice(0, -1), { [path.at(-1) ?? '']: null }),
      `missing property '${path.at(-1) ?? ''}'`,
    ]),
    [{ admission: { replicas: '2' } }, '/admission/replicas'],
    [{ admission: { replicas: -1 } }, '/admission/replicas'],
    [{ admission: { podLabels: { 'app.kubernetes.io/name': 'x' } } }, '/admission/podLabels'],
    [{ commonLabels: { 'helm.sh/chart': 'x' } }, '/commonLabels'],
    [{ controller: { extraEnv: [{ name: 'A', value: 1 }] } }, '/controller/extraEnv/0/value'],
    [{ image: { tag: 'a b' } }, '/image/tag'],
    [{ image: { repository: 'boost:1.0' } }, '/image/repository'],
    [{ image: { digest: 'sha256:1' } }, '/image/digest'],
    [{ image: { pullPolicy: 'Sometimes' } }, '/image/pullPolicy'],
    [{ fullnameOverride: 'Boost' }, '/fullnameOverride'],
    [{ fullnameOverride: '1e3' }, '/fullnameOverride'],
    [{ settings: { zapLogLevel: 'loud' } }, '/settings/zapLogLevel'],
    [{ settings: { catchUp: 'yes' } }, '/settings/catchUp'],
    [{ settings: { mgrCheckInterval: 1.5 } }, '/settings/mgrCheckInterval'],
    [{ settings: { webhookDnsNames: ['a b'] } }, '/settings/webhookDnsNames/0'],
    [{ ports: { webhook: 70_000 } }, '/ports/webhook'],
    [{ webhook: { timeoutSeconds: 30 } }, '/webhook/timeoutSeconds'],
    [{ webhook: { excludedNamespaces: ['A'] } }, '/webhook/excludedNamespaces/0'],
    [{ webhook: { namespaceSelector: { a: 'b' } } }, "'a' not allowed"],
    [{ certificates: { mode: 'manual' } }, '/certificates/mode'],
    [{ certificates: { provided: { caBundle: 'MIIB' } } }, '/certificates/provided/caBundle'],
    [{ networkPolicy: { apiServerCIDRs: ['10.0.0.1'] } }, '/networkPolicy/apiServerCIDRs/0'],
  ];
  const provided = { mode: 'provided', provided: { secretName: 'mine', caBundle: CA_PEM } };

  const ruleCases: readonly (readonly [JsonObject, string])[] = [
    [
      { settings: { webhookDrainSeconds: 16 } },
      'terminationGracePeriodSeconds (30) must be at least 15 more',
    ],
    [{ settings: { leaseDurationSeconds: 4 } }, 'settings.leaseDurationSeconds must be more than'],
    [
      { settings: { leaseRetrySeconds: 4 } },
      'settings.leaseRenewDeadlineSeconds must be more than 1.2',
    ],
    [
      { settings: { caLifetimeSeconds: 86_400 } },
      'settings.servingLifetimeSeconds must not be more',
    ],
    [
      { settings: { caLifetimeSeconds: 180, servingLifetimeSeconds: 180 } },
      'settings.caLifetimeSeconds must be more than 3 times',
    ],
    [
      { webhook: { objectSelector: { matchLabels: { a: 'b' } } } },
      'webhook.objectSelector needs settings.catchUp=false',
    ],
    [
      { webhook: { namespaceSelector: { matchLabels: { a: 'b' } } } },
      'webhook.namespaceSelector needs settings.catchUp=false',
    ],
    [{ admission: { serviceAccount: { create: false } } }, 'needs admission.serviceAccount.name'],
    [
      {
        admission: { serviceAccount: { name: 'a' } },
        controller: { serviceAccount: { name: 'a' } },
      },
      'ServiceAccounts of their own',
    ],
    ...['POD_NAMESPACE', 'ZAP_LOG_LEVEL', 'WEBHOOK_PORT'].map((name): [JsonObject, string] => [
      { admission: { extraEnv: [{ name, value: 'x' }] } },
      `admission.extraEnv: ${name} is set already`,
    ]),
    [
      { controller: { extraEnv: [{ name: 'A' }, { name: 'A', value: 'x' }] } },
      'controller.extraEnv: A is set already',
    ],
    [{ ports: { metrics: 8081 } }, 'must differ'],
    [
      { certificates: { ...provided, provided: { secretName: 'mine' } } },
      'certificates.provided.caBundle must be',
    ],
    [
      { certificates: { ...provided, provided: { caBundle: CA_PEM } } },
      'certificates.provided.secretName must',
    ],
  ];

  it.each([...schemaCases, ...ruleCases].map(([values, message]) => ({ values, message })))(
    '$values',
    async ({ values, message }) => {
      expect(await askChart({ values })).toEqual({
        kind: 'Refused',
        message: expect.stringContaining(message),
      });
    },
  );

  it('nothing of that which another chart above it may set', async () => {
    expect(await askChart({ values: { global: { any: 'thing' } } })).toMatchObject({
      kind: 'Rendered',
    });
  });
});

describe('with network policies', () => {
  const networkPolicy = { enabled: true, apiServerCIDRs: ['10.0.0.0/8'] };

  it('the controller may ask each pod of admission what it serves', async () => {
    const selector = below(deploymentOf(byDefault(), 'admission'), 'spec', 'selector');
    expect(await egressToAdmission({ networkPolicy })).toEqual({
      ports: [{ port: 9443, protocol: 'TCP' }],
      to: [{ podSelector: selector }],
    });
  });

  it('it may ask any address where admission has those of its nodes, which nothing selects', async () => {
    const values = { networkPolicy, webhook: { hostNetwork: true }, ports: { webhook: 10_250 } };
    expect(await egressToAdmission(values)).toEqual({ ports: [{ port: 10_250, protocol: 'TCP' }] });
  });

  /** The rule beside that for the API servers. */
  async function egressToAdmission(values: JsonObject): Promise<JsonObject | undefined> {
    const policy = ofKind(
      await templateChart({ namespace: 'boost', values }),
      'NetworkPolicy',
    ).find((each) => nameOf(each).endsWith('-controller'));
    return listAt(below(policy ?? {}, 'spec'), 'egress').find((rule) => 'ports' in rule);
  }
});

describe('the monitoring', () => {
  it('asks only for metrics that the programs have', async () => {
    const asked = expressions().flatMap((text) => [
      ...text.matchAll(/\b(?:startup_cpu_)?boost_\w+/g),
    ]);
    const names = new Set(asked.map(([name]) => name));
    expect(names.size).toBeGreaterThan(15);
    const known = await metricNames();
    expect([...names].filter((name) => !known.has(name))).toEqual([]);
  });

  it('shows every metric of ours', async () => {
    const asked = expressions().join('\n');
    const own = [...(await metricNames())].filter(
      (name) => /^(startup_cpu_)?boost_/.test(name) && !/_(sum|count)$/.test(name),
    );
    expect(
      own.filter((name) => !asked.includes(name) && !asked.includes(`${name}_bucket`)),
    ).toEqual([]);
  });

  it('scrapes each component by its one Service with a port for metrics', () => {
    const objects = objectsOf('all of the monitoring');
    const monitors = ofKind(objects, 'ServiceMonitor');
    expect(monitors).toHaveLength(2);
    for (const monitor of monitors) {
      const wanted = Object.entries(below(monitor, 'spec', 'selector', 'matchLabels'));
      const [{ port = '' } = {}] = listAt(objectAt(monitor, 'spec'), 'endpoints');
      const scraped = ofKind(objects, 'Service').filter((service) => {
        const labels = new Map(labelsOf(service));
        const ports = listAt(objectAt(service, 'spec'), 'ports');
        return (
          wanted.every(([key, value]) => labels.get(key) === value) &&
          ports.some(({ name }) => name === port)
        );
      });
      expect(scraped).toHaveLength(1);
    }
  });

  it('has labels of its own, which come before those of everything, each once', async () => {
    const own = { enabled: true, labels: { release: 'mine', 'example.com/empty': '' } };
    const objects = await templateChart({
      values: {
        commonLabels: { release: 'all', 'example.com/empty': 'full', 'example.com/team': '7' },
        monitoring: { serviceMonitor: own, prometheusRule: own, dashboard: own },
      },
    });
    const labelled = ['ServiceMonitor', 'PrometheusRule', 'ConfigMap'].flatMap((kind) =>
      ofKind(objects, kind),
    );
    expect(labelled).toHaveLength(4);
    for (const object of labelled) {
      expect(below(object, 'metadata', 'labels')).toMatchObject({
        release: 'mine',
        'example.com/empty': '',
        'example.com/team': '7',
        'app.kubernetes.io/part-of': 'startup-cpu-boost',
      });
    }
    expect(below(onlyOne(objects, 'ConfigMap'), 'metadata', 'labels').grafana_dashboard).toBe('1');
  });

  it('warns of a certificate only when it should have been renewed long ago', async () => {
    const rulesWith = async (values: JsonObject): Promise<string> => {
      const monitoring = { prometheusRule: { enabled: true } };
      const objects = await templateChart({ values: { monitoring, ...values } });
      return JSON.stringify(onlyOne(objects, 'PrometheusRule'));
    };
    const renewedBy = (certManager: JsonObject): JsonObject => ({
      certificates: { mode: 'cert-manager', certManager },
    });
    const provided = { secretName: 'mine', caBundle: CA_PEM };
    const expected: readonly (readonly [JsonObject, number])[] = [
      [{}, 604_800],
      [{ settings: { servingLifetimeSeconds: 600 } }, 100],
      [renewedBy({}), 604_800],
      [renewedBy({ duration: '48h', renewBefore: '16h' }), 28_800],
      [renewedBy({ duration: '48h', renewBefore: '8h08m10s' }), 14_645],
      [{ certificates: { mode: 'provided', provided } }, 604_800],
    ];
    for (const [values, seconds] of expected) {
      const rules = await rulesWith(values);
      expect(rules).toContain(`- time() < ${seconds}"`);
      expect(rules).not.toMatch(/NAMESPACE\b|CERTIFICATE_SECONDS/);
    }
  });

  it('looks for admission by the name that its Service has', () => {
    const services = ofKind(byDefault(), 'Service').map(nameOf);
    const [up = ''] = expressions().filter((text) => text.includes('up{'));
    const [, namespace, pattern = ''] = /up\{namespace="(.*)", service=~"(.*)"\}/.exec(up) ?? [];
    expect(namespace).toBe('boost');
    // Prometheus takes such an expression for the whole of a label.
    const found = services.filter((name) => new RegExp(`^(?:${pattern})$`).test(name));
    expect(found).toEqual(['startup-cpu-boost-admission-metrics']);
  });

  /** Of all alerts and panels. */
  function expressions(): readonly string[] {
    const objects = objectsOf('all of the monitoring');
    const alerts = listAt(objectAt(onlyOne(objects, 'PrometheusRule'), 'spec'), 'groups')
      .flatMap((group) => listAt(group, 'rules'))
      .map((rule) => textAt(rule, 'expr'));
    const [dashboard = ''] = Object.values(objectAt(onlyOne(objects, 'ConfigMap'), 'data'));
    const panels = listAt(objectOf(JSON.parse(String(dashboard))), 'panels')
      .flatMap((panel) => listAt(panel, 'targets'))
      .map((target) => textAt(target, 'expr'));
    return [...alerts, ...panels];
  }

  async function metricNames(): Promise<ReadonlySet<string>> {
    const text = await createMetrics().text();
    const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
    return new Set(
      types.flatMap(([, name = '', type]) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    );
  }
});

function environment(what: string, component: Component): Readonly<Record<string, string>> {
  return environmentOf(deploymentOf(objectsOf(what), component));
}

function chartValues(): JsonObject {
  return objectOf(parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')));
}

function labelsOf(object: JsonObject): readonly [string, unknown][] {
  return [
    ...Object.entries(below(podOf(object), 'metadata', 'labels')),
    ...Object.entries(below(object, 'metadata', 'labels')),
  ];
}

/** What an object selects pods with, and whose they should be. */
function selectorsOf(
  object: JsonObject,
): readonly { readonly component: Component; readonly labels: JsonObject }[] {
  const spec = objectAt(object, 'spec');
  const labels =
    object.kind === 'Service'
      ? objectAt(spec, 'selector')
      : below(spec, object.kind === 'NetworkPolicy' ? 'podSelector' : 'selector', 'matchLabels');
  const isSelector = ['Service', 'NetworkPolicy', 'Deployment', 'PodDisruptionBudget'].includes(
    textAt(object, 'kind'),
  );
  if (!isSelector) return [];
  const component = nameOf(object).includes('-controller') ? 'controller' : 'admission';
  return [{ component, labels }];
}

/** Of the objects whose keys are the chart's own; those that are empty by default take any. */
function objectPathsOf(values: JsonObject, path: readonly string[] = []): readonly string[][] {
  const own = Object.entries(values).flatMap(([key, value]) => {
    const isOurs = !['resources', 'labels'].includes(key);
    const isFilled = Object.keys(objectOf(value)).length > 0 && !Array.isArray(value);
    const isMap = isOurs && isFilled && typeof value === 'object';
    return isMap ? objectPathsOf(objectOf(value), [...path, key]) : [];
  });
  return [[...path], ...own];
}

/** Of what the chart cannot do without; a setting that is missing has the program's own default. */
function filledPathsOf(values: JsonObject): readonly string[][] {
  return objectPathsOf(values)
    .filter(([first]) => first !== 'settings')
    .flatMap((path) =>
      Object.entries(below(values, ...path))
        .filter(([, value]) => !isEmpty(value))
        .map(([key]) => [...path, key]),
    )
    .concat([['settings']]);
}

function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && Object.keys(objectOf(value)).length === 0);
}

function nested(path: readonly string[], value: JsonObject): JsonObject {
  return path.reduceRight((inner, key) => ({ [key]: inner }), value);
}
