/** Which StartupCPUBoosts a real API server with our definition accepts and refuses, and with what words. */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { compileBoost, fieldsOf } from '../../src/boost-engine';
import type { FailureCause, JsonObject } from '../../src/kube';
import type { Schema } from '../../src/resources/schemaType';
import { startupCpuBoostSchema } from '../../src/resources/startupCpuBoost.schema';
import { startBoostApi } from '../support/boostApi';
import type { BoostApi, Verdict } from '../support/boostApi';

const root = resolve(__dirname, '../..');

/** Nobody has checked it: the point of most rows is that it is wrong. */
type Manifest = JsonObject;

const web = { matchLabels: { app: 'web' } };
const byName = { matchContainers: { type: 'ExactName', value: 'app' } };
const double = { percentageIncrease: { value: 100 } };
const untilReady = { podCondition: { type: 'Ready', status: 'True' } };

/** A sound boost; `parts` replace whole top-level fields, and undefined leaves one out. */
function boost(parts: Manifest = {}): Manifest {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1alpha1',
    kind: 'StartupCPUBoost',
    metadata: { name: 'spring-apps' },
    selector: web,
    spec: spec({}),
    ...parts,
  };
}

function spec(parts: Manifest): Manifest {
  return {
    resourcePolicy: { containerPolicies: [{ ...byName, ...double }] },
    durationPolicy: untilReady,
    ...parts,
  };
}

function named(name: unknown): Manifest {
  return boost({ metadata: { name } });
}

function withLabels(matchLabels: unknown): Manifest {
  return boost({ selector: { matchLabels } });
}

function withExpressions(...matchExpressions: readonly unknown[]): Manifest {
  return boost({ selector: { matchExpressions } });
}

function withCpuLimits(cpuLimits: unknown): Manifest {
  return boost({
    spec: spec({ resourcePolicy: { containerPolicies: [{ ...byName, ...double }], cpuLimits } }),
  });
}

function withPolicies(...containerPolicies: readonly unknown[]): Manifest {
  return boost({ spec: spec({ resourcePolicy: { containerPolicies } }) });
}

function withMatcher(type: unknown, value: unknown): Manifest {
  return withPolicies({ matchContainers: { type, value }, ...double });
}

function withPercentage(value: unknown): Manifest {
  return withPolicies({ ...byName, percentageIncrease: { value } });
}

function withFixed(fixedResources: unknown): Manifest {
  return withPolicies({ ...byName, fixedResources });
}

function withDuration(durationPolicy: unknown): Manifest {
  return boost({ spec: spec({ durationPolicy }) });
}

function withFixedDuration(value: unknown, unit: unknown): Manifest {
  return withDuration({ fixedDuration: { value, unit } });
}

function withCondition(type: unknown, status: unknown): Manifest {
  return withDuration({ podCondition: { type, status } });
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const accepted: readonly (readonly [string, Manifest])[] = [
  ['the first example of the README', exampleManifest()],

  // The five shapes that manifests for google/kube-startup-cpu-boost have.
  [
    'a percentage for a container by its deprecated containerName',
    boost({
      selector: {
        matchExpressions: [{ key: 'app.kubernetes.io/name', operator: 'In', values: ['orders'] }],
      },
      spec: spec({
        resourcePolicy: {
          containerPolicies: [{ containerName: 'orders', percentageIncrease: { value: 50 } }],
        },
      }),
    }),
  ],
  [
    'fixed requests and limits',
    withPolicies({ containerName: 'orders', fixedResources: { requests: '1', limits: '2' } }),
  ],
  [
    'policies by pattern and by name side by side',
    withPolicies(
      { matchContainers: { type: 'RegexName', value: '^(orders|billing)-.*$' }, ...double },
      {
        matchContainers: { type: 'ExactName', value: 'gateway' },
        fixedResources: { requests: '2' },
      },
    ),
  ],
  ['a boost until a pod condition', withCondition('Ready', 'True')],
  ['a boost for a fixed time', withFixedDuration(60, 'Seconds')],

  [
    'both durations, of which the first one counts',
    withDuration({ ...untilReady, fixedDuration: { value: 2, unit: 'Minutes' } }),
  ],
  ['a name of 63 characters', named('a'.repeat(63))],
  ['a name with dots', named('spring.apps.v2')],

  ['an empty selector, for all pods of the namespace', boost({ selector: {} })],
  ['empty lists in a selector', boost({ selector: { matchLabels: {}, matchExpressions: [] } })],
  ['an empty label value', withLabels({ app: '' })],
  ['a label value of 63 characters', withLabels({ app: 'a'.repeat(63) })],
  ['a label value with dots, dashes and underscores inside', withLabels({ app: 'A.b-c_9' })],
  ['a label key with a DNS prefix', withLabels({ 'app.kubernetes.io/name': 'web' })],
  ['the longest label key', withLabels({ [`${'a.'.repeat(126)}a/${'k'.repeat(63)}`]: 'web' })],
  ['50 labels', withLabels(Object.fromEntries(times(50, (index) => [`key-${index}`, 'v'])))],
  ['In with values', withExpressions({ key: 'app', operator: 'In', values: ['a', 'b'] })],
  ['NotIn with values', withExpressions({ key: 'app', operator: 'NotIn', values: ['a'] })],
  ['Exists without values', withExpressions({ key: 'app', operator: 'Exists' })],
  [
    'DoesNotExist with an empty list',
    withExpressions({ key: 'app', operator: 'DoesNotExist', values: [] }),
  ],
  [
    '50 requirements with 50 values each',
    withExpressions(
      ...times(50, (index) => ({
        key: `key-${index}`,
        operator: 'In',
        values: times(50, (value) => `v${value}`),
      })),
    ),
  ],

  ...['Raise', 'Remove', 'Keep'].map((word): [string, Manifest] => [
    `cpuLimits ${word}`,
    withCpuLimits(word),
  ]),
  [
    '100 policies',
    withPolicies(
      ...times(100, (index) => ({
        matchContainers: { type: 'ExactName', value: `app-${index}` },
        ...double,
      })),
    ),
  ],
  [
    'an empty containerName beside matchContainers, as Go types write it',
    withPolicies({ containerName: '', ...byName, ...double }),
  ],
  ['a name that no container can have, which is warned of', withMatcher('ExactName', '*')],
  ['a pattern of 256 characters', withMatcher('RegexName', 'a'.repeat(256))],
  [
    'a pattern with flags, classes and repetition',
    withMatcher('RegexName', '(?i)^[[:alpha:]]{1,8}-\\d+$'),
  ],

  ['an increase of 1 %', withPercentage(1)],
  ['an increase of 1000000 %', withPercentage(1_000_000)],

  ['requests as a number', withFixed({ requests: 2 })],
  ['requests in millicores', withFixed({ requests: '500m' })],
  ['requests as a decimal fraction', withFixed({ requests: '0.5' })],
  ['requests with an exponent', withFixed({ requests: '1e1' })],
  ['requests in microcores', withFixed({ requests: '1500u' })],
  ['limits equal to requests in another notation', withFixed({ requests: 1, limits: '1000m' })],
  ['limits above requests', withFixed({ requests: '900m', limits: 1 })],
  [
    'limits of 0, as Go types write limits that are left out',
    withFixed({ requests: '2', limits: '0' }),
  ],
  ['limits of 0 as a number', withFixed({ requests: '2', limits: 0 })],

  ['one second', withFixedDuration(1, 'Seconds')],
  ['a day in seconds', withFixedDuration(86_400, 'Seconds')],
  ['a day in minutes', withFixedDuration(1_440, 'Minutes')],
  ['a condition that must be False', withCondition('ContainersReady', 'False')],
  ['a condition that must be Unknown', withCondition('Ready', 'Unknown')],
  ['a readiness gate with a prefix', withCondition('example.com/warmed-up', 'True')],

  ['a status, which only the controller sets and is dropped', boost({ status: { stuckPods: 3 } })],
];

const LABEL_KEY =
  'must be a label key: a name of up to 63 letters, digits, "-", "_" and ".", that begins and ends with a letter or digit, with an optional DNS prefix before a slash, such as app or example.com/app';
const LABEL_VALUE =
  'a label value must be empty, or up to 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit';
const NAME =
  'metadata.name must have at most 63 characters: it becomes a label value on boosted pods';
const SELECTOR =
  'selector is required at the top level of the manifest, beside spec; {} selects all pods of the namespace';
const SPEC_SELECTOR =
  'spec.selector is in the wrong place: move it to the top level of the manifest, beside spec';
const NEEDS_VALUES = 'values must have at least one entry when operator is In or NotIn';
const NO_VALUES = 'values must be left out when operator is Exists or DoesNotExist';
const ONE_MATCHER =
  'exactly one of matchContainers and containerName must be set; containerName is deprecated';
const ONE_RESOURCE = 'exactly one of percentageIncrease and fixedResources must be set';
const PATTERN =
  'matchContainers.value must be a regular expression in RE2 syntax when type is RegexName';
const REQUESTS = 'requests must be a CPU quantity greater than 0, such as 2, "0.5" or 500m';
const LIMITS = 'limits must be a CPU quantity, such as 2, "0.5" or 500m';
const LIMITS_BELOW = 'limits must not be lower than requests';
const DURATION = 'at least one of fixedDuration and podCondition must be set';
const MINUTES = 'value must be at most 1440 when unit is Minutes: a boost lasts at most a day';

const cpuLimits = 'spec.resourcePolicy.cpuLimits';
const policies = 'spec.resourcePolicy.containerPolicies';
const policy = `${policies}[0]`;
const expression = 'selector.matchExpressions[0]';
const duration = 'spec.durationPolicy';
const REQUIRED = 'Required value';

/** What is refused, the field that the answer names, and words of its message. */
const refused: readonly (readonly [string, Manifest, string, string])[] = [
  ['a name of 64 characters', named('a'.repeat(64)), '<nil>', NAME],
  [
    'a name that is no DNS name',
    named('Spring_Apps'),
    'metadata.name',
    'lowercase RFC 1123 subdomain',
  ],

  ['no selector', boost({ selector: undefined }), '<nil>', SELECTOR],
  [
    'a selector under spec',
    boost({ selector: undefined, spec: spec({ selector: web }) }),
    'spec.selector',
    SPEC_SELECTOR,
  ],
  [
    'a selector in both places',
    boost({ spec: spec({ selector: web }) }),
    'spec.selector',
    SPEC_SELECTOR,
  ],
  [
    'an empty selector under spec',
    boost({ selector: undefined, spec: spec({ selector: {} }) }),
    'spec.selector',
    SPEC_SELECTOR,
  ],
  ['a selector that is a list', boost({ selector: [] }), 'selector', 'must be of type object'],
  ['a selector that is null', boost({ selector: null }), '<nil>', SELECTOR],

  ['a label key with a space', withLabels({ 'my app': 'web' }), 'selector.matchLabels', LABEL_KEY],
  [
    'a label key that begins with a dash',
    withLabels({ '-app': 'web' }),
    'selector.matchLabels',
    LABEL_KEY,
  ],
  ['an empty label key', withLabels({ '': 'web' }), 'selector.matchLabels', LABEL_KEY],
  [
    'a label key with a name of 64 characters',
    withLabels({ ['k'.repeat(64)]: 'web' }),
    'selector.matchLabels',
    LABEL_KEY,
  ],
  [
    'a label key with a prefix that is no DNS name',
    withLabels({ 'My_Domain/app': 'web' }),
    'selector.matchLabels',
    LABEL_KEY,
  ],
  [
    'a label value with a space',
    withLabels({ app: 'my web' }),
    'selector.matchLabels[app]',
    LABEL_VALUE,
  ],
  [
    'a label value that ends with a dash',
    withLabels({ app: 'web-' }),
    'selector.matchLabels[app]',
    LABEL_VALUE,
  ],
  [
    'a label value of 64 characters',
    withLabels({ app: 'a'.repeat(64) }),
    'selector.matchLabels.app',
    'may not be more than 63',
  ],
  [
    'a label value that is a number',
    withLabels({ app: 7 }),
    'selector.matchLabels.app',
    'must be of type string',
  ],
  [
    '51 labels',
    withLabels(Object.fromEntries(times(51, (index) => [`key-${index}`, 'v']))),
    'selector.matchLabels',
    'must have at most 50 items',
  ],

  [
    'a requirement without a key',
    withExpressions({ operator: 'Exists' }),
    `${expression}.key`,
    REQUIRED,
  ],
  [
    'a requirement without an operator',
    withExpressions({ key: 'app' }),
    `${expression}.operator`,
    REQUIRED,
  ],
  [
    'a requirement with a key that is none',
    withExpressions({ key: 'a/b/c', operator: 'Exists' }),
    `${expression}.key`,
    `key ${LABEL_KEY}`,
  ],
  [
    'an operator of node selectors',
    withExpressions({ key: 'app', operator: 'Gt', values: ['1'] }),
    `${expression}.operator`,
    'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
  ],
  [
    'an operator in lower case',
    withExpressions({ key: 'app', operator: 'in', values: ['a'] }),
    `${expression}.operator`,
    'supported values: "In"',
  ],
  ['In without values', withExpressions({ key: 'app', operator: 'In' }), expression, NEEDS_VALUES],
  [
    'In with an empty list',
    withExpressions({ key: 'app', operator: 'In', values: [] }),
    expression,
    NEEDS_VALUES,
  ],
  [
    'NotIn without values',
    withExpressions({ key: 'app', operator: 'NotIn' }),
    expression,
    NEEDS_VALUES,
  ],
  [
    'Exists with values',
    withExpressions({ key: 'app', operator: 'Exists', values: ['a'] }),
    expression,
    NO_VALUES,
  ],
  [
    'DoesNotExist with values',
    withExpressions({ key: 'app', operator: 'DoesNotExist', values: ['a'] }),
    expression,
    NO_VALUES,
  ],
  [
    'a value that is no label value',
    withExpressions({ key: 'app', operator: 'In', values: ['ok', 'a/b'] }),
    `${expression}.values[1]`,
    LABEL_VALUE,
  ],
  [
    '51 values',
    withExpressions({ key: 'app', operator: 'In', values: times(51, String) }),
    `${expression}.values`,
    'must have at most 50 items',
  ],
  [
    '51 requirements',
    withExpressions(...times(51, () => ({ key: 'app', operator: 'Exists' }))),
    'selector.matchExpressions',
    'must have at most 50 items',
  ],

  ['no spec', boost({ spec: undefined }), 'spec', REQUIRED],
  [
    'no resourcePolicy',
    boost({ spec: spec({ resourcePolicy: undefined }) }),
    'spec.resourcePolicy',
    REQUIRED,
  ],
  ['no containerPolicies', boost({ spec: spec({ resourcePolicy: {} }) }), policies, REQUIRED],
  ['cpuLimits in small letters', withCpuLimits('remove'), cpuLimits, 'supported values: "Raise"'],
  ['cpuLimits that are empty', withCpuLimits(''), cpuLimits, 'supported values: "Raise"'],
  ['cpuLimits as a truth value', withCpuLimits(true), cpuLimits, 'must be of type string'],
  ['an empty list of policies', withPolicies(), policies, 'should have at least 1 items'],
  [
    '101 policies',
    withPolicies(...times(101, () => ({ ...byName, ...double }))),
    policies,
    'must have at most 100 items',
  ],

  ['a policy that says nothing about containers', withPolicies(double), policy, ONE_MATCHER],
  [
    'a policy with both kinds of matcher',
    withPolicies({ containerName: 'app', ...byName, ...double }),
    policy,
    ONE_MATCHER,
  ],
  [
    'a policy with nothing but an empty containerName',
    withPolicies({ containerName: '', ...double }),
    policy,
    ONE_MATCHER,
  ],
  [
    'the second of two policies',
    withPolicies({ ...byName, ...double }, double),
    `${policies}[1]`,
    ONE_MATCHER,
  ],
  [
    'a containerName of 64 characters',
    withPolicies({ containerName: 'a'.repeat(64), ...double }),
    `${policy}.containerName`,
    'may not be more than 63',
  ],
  [
    'matchContainers without a type',
    withMatcher(undefined, 'app'),
    `${policy}.matchContainers.type`,
    REQUIRED,
  ],
  [
    'matchContainers without a value',
    withMatcher('ExactName', undefined),
    `${policy}.matchContainers.value`,
    REQUIRED,
  ],
  [
    'matchContainers with an empty value',
    withMatcher('RegexName', ''),
    `${policy}.matchContainers.value`,
    'should be at least 1 chars long',
  ],
  [
    'matchContainers of an unknown type',
    withMatcher('Glob', 'app-*'),
    `${policy}.matchContainers.type`,
    'supported values: "ExactName", "RegexName"',
  ],
  [
    'a pattern of 257 characters',
    withMatcher('RegexName', 'a'.repeat(257)),
    `${policy}.matchContainers.value`,
    'may not be more than 256',
  ],
  ['a pattern with an open group', withMatcher('RegexName', '^app('), policies, PATTERN],
  ['a glob as a pattern', withMatcher('RegexName', '*-app'), policies, PATTERN],
  [
    'a pattern that looks ahead, which RE2 cannot',
    withMatcher('RegexName', 'app(?!-db)'),
    policies,
    PATTERN,
  ],

  ['a policy without resources', withPolicies(byName), policy, ONE_RESOURCE],
  [
    'a policy with both kinds of resources',
    withPolicies({ ...byName, ...double, fixedResources: { requests: 1 } }),
    policy,
    ONE_RESOURCE,
  ],
  [
    'an increase without a value',
    withPercentage(undefined),
    `${policy}.percentageIncrease.value`,
    REQUIRED,
  ],
  [
    'an increase of 0 %',
    withPercentage(0),
    `${policy}.percentageIncrease.value`,
    'greater than or equal to 1',
  ],
  [
    'a decrease',
    withPercentage(-50),
    `${policy}.percentageIncrease.value`,
    'greater than or equal to 1',
  ],
  [
    'a fraction of a percent',
    withPercentage(1.5),
    `${policy}.percentageIncrease.value`,
    'must be of type int64',
  ],
  [
    'an increase as text',
    withPercentage('50%'),
    `${policy}.percentageIncrease.value`,
    'must be of type integer',
  ],
  [
    'an increase of 1000001 %',
    withPercentage(1_000_001),
    `${policy}.percentageIncrease.value`,
    'less than or equal to 1000000',
  ],

  [
    'limits without requests',
    withFixed({ limits: 2 }),
    `${policy}.fixedResources.requests`,
    REQUIRED,
  ],
  ['requests of 0', withFixed({ requests: 0 }), `${policy}.fixedResources.requests`, REQUESTS],
  [
    'requests of 0 as text',
    withFixed({ requests: '0m' }),
    `${policy}.fixedResources.requests`,
    REQUESTS,
  ],
  [
    'requests below 0',
    withFixed({ requests: '-500m' }),
    `${policy}.fixedResources.requests`,
    REQUESTS,
  ],
  [
    'requests that are no quantity',
    withFixed({ requests: '2 cores' }),
    `${policy}.fixedResources.requests`,
    REQUESTS,
  ],
  ['empty requests', withFixed({ requests: '' }), `${policy}.fixedResources.requests`, REQUESTS],
  [
    'requests as a fraction without quotes',
    withFixed({ requests: 0.5 }),
    `${policy}.fixedResources.requests`,
    'must be of type integer,string',
  ],
  [
    'requests of 33 characters',
    withFixed({ requests: '1'.repeat(33) }),
    `${policy}.fixedResources.requests`,
    'may not be more than 32',
  ],
  [
    'limits below requests',
    withFixed({ requests: 2, limits: '1999m' }),
    `${policy}.fixedResources.limits`,
    LIMITS_BELOW,
  ],
  [
    'limits below 0',
    withFixed({ requests: 2, limits: -1 }),
    `${policy}.fixedResources.limits`,
    LIMITS,
  ],
  [
    'limits that are no quantity',
    withFixed({ requests: 2, limits: 'none' }),
    `${policy}.fixedResources.limits`,
    LIMITS,
  ],

  ['no durationPolicy', boost({ spec: spec({ durationPolicy: undefined }) }), duration, REQUIRED],
  ['a durationPolicy without an end', withDuration({}), duration, DURATION],
  [
    'a duration of 0',
    withFixedDuration(0, 'Seconds'),
    `${duration}.fixedDuration.value`,
    'greater than or equal to 1',
  ],
  [
    'a duration without a value',
    withFixedDuration(undefined, 'Seconds'),
    `${duration}.fixedDuration.value`,
    REQUIRED,
  ],
  [
    'a duration without a unit',
    withFixedDuration(60, undefined),
    `${duration}.fixedDuration.unit`,
    REQUIRED,
  ],
  [
    'a duration in hours',
    withFixedDuration(1, 'Hours'),
    `${duration}.fixedDuration.unit`,
    'supported values: "Seconds", "Minutes"',
  ],
  [
    'a duration as text',
    withFixedDuration('60s', 'Seconds'),
    `${duration}.fixedDuration.value`,
    'must be of type integer',
  ],
  [
    'more seconds than a day has',
    withFixedDuration(86_401, 'Seconds'),
    `${duration}.fixedDuration.value`,
    'less than or equal to 86400',
  ],
  [
    'more minutes than a day has',
    withFixedDuration(1_441, 'Minutes'),
    `${duration}.fixedDuration.value`,
    MINUTES,
  ],
  [
    'a condition without a type',
    withCondition(undefined, 'True'),
    `${duration}.podCondition.type`,
    REQUIRED,
  ],
  [
    'a condition with an empty type',
    withCondition('', 'True'),
    `${duration}.podCondition.type`,
    'should be at least 1 chars long',
  ],
  [
    'a condition without a status',
    withCondition('Ready', undefined),
    `${duration}.podCondition.status`,
    REQUIRED,
  ],
  [
    'a condition with a status in lower case',
    withCondition('Ready', 'true'),
    `${duration}.podCondition.status`,
    'supported values: "True", "False", "Unknown"',
  ],
  [
    'a condition with a status without quotes',
    withCondition('Ready', true),
    `${duration}.podCondition.status`,
    'must be of type string',
  ],
];

let api: BoostApi;
beforeAll(async () => {
  api = await startBoostApi();
});
afterAll(async () => {
  await api.stop();
});

describe('the API server with our definition', () => {
  it.each(accepted)('accepts %s', async (_what, manifest) => {
    expect(await api.create(manifest, 'dry run')).toMatchObject({ kind: 'Accepted' });
    expect(compileBoost(manifest)).toMatchObject({ kind: 'Valid' });
  });

  it.each(refused)('refuses %s', async (_what, manifest, field, words) => {
    const causes = causesOf(await api.create(manifest, 'dry run'));
    expect(new Set(causes.map((cause) => cause.field))).toEqual(new Set([field]));
    expect(causes.map((cause) => cause.message).join('\n')).toContain(words);
  });

  it('has a refused manifest for each rule of the schema', () => {
    const words = refused.map(([, , , message]) => message);
    const untried = messagesBelow(startupCpuBoostSchema).filter(
      (message) => !words.some((word) => message.includes(word)),
    );
    expect(untried).toEqual([]);
  });

  it('refuses an update that breaks a rule', async () => {
    expect(await api.create(named('edited'))).toMatchObject({ kind: 'Accepted' });
    const answer = await api.merge('edited', { spec: { durationPolicy: { podCondition: null } } });
    expect(causesOf(answer)).toMatchObject([
      { field: duration, message: expect.stringContaining(DURATION) },
    ]);
  });

  it('says what is wrong with a pattern', async () => {
    const answer = await api.create(withMatcher('RegexName', '^app('), 'dry run');
    expect(causesOf(answer)).toMatchObject([
      { field: policies, message: expect.stringContaining('missing closing ): `^app(`') },
    ]);
  });

  it('refuses to take the selector away again', async () => {
    expect(await api.create(named('once-selective'))).toMatchObject({ kind: 'Accepted' });
    const answer = await api.merge('once-selective', { selector: null });
    expect(causesOf(answer)).toMatchObject([
      { field: '<nil>', message: expect.stringContaining(SELECTOR) },
    ]);
  });

  it('keeps the status apart from the spec', async () => {
    expect(await api.create(named('observed'))).toMatchObject({ kind: 'Accepted' });
    expect(await api.merge('observed', { status: { stuckPods: 1 } })).toMatchObject({
      kind: 'Accepted',
      object: expect.not.objectContaining({ status: expect.anything() }),
    });
    expect(await api.merge('observed', { status: { stuckPods: 1 } }, 'status')).toMatchObject({
      kind: 'Accepted',
      object: { status: { stuckPods: 1 } },
    });
  });

  it('prints what a boost does and how it goes as the columns of kubectl get', async () => {
    const status = {
      policy: '+100%',
      until: 'Ready|120s',
      activeContainerBoosts: 2,
      totalContainerBoosts: 7,
      stuckPods: 1,
      conditions: [
        {
          type: 'Active',
          status: 'True',
          reason: 'Ready',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    };
    expect(await api.create(named('printed'))).toMatchObject({ kind: 'Accepted' });
    expect(await api.merge('printed', { status }, 'status')).toMatchObject({ kind: 'Accepted' });
    const { columns, cells } = await api.table('printed');
    expect(columns).toEqual([
      'Name',
      'Policy',
      'Until',
      'Active',
      'Total',
      'Stuck',
      'Status',
      'Age',
    ]);
    expect(cells.slice(0, -1)).toEqual(['printed', '+100%', 'Ready|120s', 2, 7, 1, 'Ready']);
  });
});

// Skipped on a cluster of others (TEST_KUBECONFIG): it changes the definition for a moment, which they would feel.
const describeOnOwnServer = (process.env.TEST_KUBECONFIG ?? '') === '' ? describe : describe.skip;

describeOnOwnServer('a boost that an older definition let in', () => {
  const older = {
    'no-selector': boost({ metadata: { name: 'no-selector' }, selector: undefined }),
    'no-end': { ...withDuration({}), metadata: { name: 'no-end' } },
    'bad-pattern': { ...withMatcher('RegexName', '('), metadata: { name: 'bad-pattern' } },
    'bad-operator': {
      ...withExpressions({ key: 'app', operator: 'Gt', values: ['1'] }),
      metadata: { name: 'bad-operator' },
    },
    [`long-${'a'.repeat(70)}`]: named(`long-${'a'.repeat(70)}`),
  };

  beforeAll(async () => {
    await api.define({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    await api.until(named('a'.repeat(64)), 'Accepted');
    for (const manifest of Object.values(older)) {
      expect(await api.create(manifest)).toMatchObject({ kind: 'Accepted' });
    }
    await api.define(startupCpuBoostSchema);
    await api.until(named('a'.repeat(64)), 'Refused');
  });

  it.each(Object.keys(older))('takes its status: %s', async (name) => {
    expect(await api.merge(name, { status: { stuckPods: 1 } }, 'status')).toMatchObject({
      kind: 'Accepted',
    });
  });

  it.each(Object.keys(older))('takes a label: %s', async (name) => {
    expect(await api.merge(name, { metadata: { labels: { team: 'web' } } })).toMatchObject({
      kind: 'Accepted',
    });
  });

  it.each([
    ['no-selector', { selector: web }],
    ['no-end', { spec: { durationPolicy: untilReady } }],
    ['bad-operator', { selector: web }],
    ['bad-pattern', { spec: spec({}) }],
  ])('can be put right: %s', async (name, repair) => {
    expect(await api.merge(name, repair)).toMatchObject({ kind: 'Accepted' });
  });
});

function causesOf(verdict: Verdict): readonly FailureCause[] {
  return verdict.kind === 'Refused' ? verdict.causes : [];
}

function messagesBelow(schema: Schema): string[] {
  const below = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items === undefined ? [] : [schema.items]),
    ...(schema.additionalProperties === undefined ? [] : [schema.additionalProperties]),
  ];
  return [
    ...(schema['x-kubernetes-validations'] ?? []).map(({ message }) => message),
    ...below.flatMap(messagesBelow),
  ];
}

function exampleManifest(): Manifest {
  const manifest: unknown = parse(readFileSync(resolve(root, 'docs/examples/boost.yaml'), 'utf8'));
  // Its namespace would have to be the one of the test.
  return { ...Object.fromEntries(fieldsOf(manifest)), metadata: { name: 'spring-apps' } };
}
