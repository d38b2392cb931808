/** Compiling a StartupCPUBoost: what is valid, and one sentence for each thing that is not. */
import { describe, expect, it } from '@jest/globals';
import { compileBoost, policyFor } from '../../../src/boost-engine';
import type { ValidBoost } from '../../../src/boost-engine';
import { aBoost, percentageIncrease, UNTIL_READY } from '../../support/builders';

const POLICIES = 'spec.resourcePolicy.containerPolicies';

function valid(manifest: unknown): ValidBoost {
  const boost = compileBoost(manifest);
  if (boost.kind === 'Invalid') throw new Error(JSON.stringify(boost.issues));
  return boost;
}

function issuesOf(manifest: unknown) {
  const boost = compileBoost(manifest);
  return boost.kind === 'Invalid' ? boost.issues : [];
}

const app = { matchContainers: { type: 'ExactName', value: 'app' } };
const withPolicy = (policy: object) => aBoost({ containerPolicies: [{ ...app, ...policy }] });
const fixed = (fixedResources: unknown) => withPolicy({ fixedResources });

describe('compileBoost', () => {
  it('keeps who the boost is', () => {
    const manifest = aBoost({
      metadata: { uid: 'u', generation: 4, creationTimestamp: '2026-06-01T12:00:00Z' },
    });
    expect(valid(manifest)).toMatchObject({
      namespace: 'default',
      name: 'boost',
      uid: 'u',
      generation: 4,
      createdAt: Date.parse('2026-06-01T12:00:00Z'),
    });
  });

  it.each([
    ['a percentage', withPolicy({ percentageIncrease: { value: 50 } })],
    ['fixed requests and limits', fixed({ requests: '1', limits: '1500m' })],
    ['fixed requests alone', fixed({ requests: '1' })],
    ['limits written as zero by a Go client', fixed({ requests: '1', limits: '0' })],
    [
      'the other resource policy written as null',
      withPolicy({ percentageIncrease: { value: 1 }, fixedResources: null }),
    ],
    [
      'the deprecated containerName',
      aBoost({ containerPolicies: [{ containerName: 'app', percentageIncrease: { value: 1 } }] }),
    ],
    [
      'both durations',
      aBoost({ durationPolicy: { ...UNTIL_READY, fixedDuration: { unit: 'Minutes', value: 2 } } }),
    ],
    ['no selector, as upstream stored it', { ...aBoost(), selector: undefined }],
    ['a name of 63 characters', aBoost({ name: 'a'.repeat(63) })],
  ])('accepts %s', (_what, manifest) => {
    expect(issuesOf(manifest)).toEqual([]);
  });

  it.each<[string, unknown, string, string]>([
    ['no name', { ...aBoost(), metadata: { namespace: 'default' } }, 'metadata.name', '1 to 63'],
    ['a name of 64 characters', aBoost({ name: 'a'.repeat(64) }), 'metadata.name', '1 to 63'],
    [
      'a selector under spec',
      aBoost({ spec: { selector: { matchLabels: {} } } }),
      'spec.selector',
      'top level',
    ],
    ['a selector that is none', { ...aBoost(), selector: 'app' }, 'selector', 'label selector'],
    ['no policies', aBoost({ containerPolicies: [] }), POLICIES, 'at least one'],
    [
      'policies that are no list',
      aBoost({ spec: { resourcePolicy: { containerPolicies: {} } } }),
      POLICIES,
      'at least one',
    ],
    ['no resourcePolicy', aBoost({ spec: { resourcePolicy: null } }), POLICIES, 'at least one'],
    [
      'a policy without a matcher',
      aBoost({ containerPolicies: [{ percentageIncrease: { value: 1 } }] }),
      `${POLICIES}[0]`,
      'matchContainers',
    ],
    [
      'a bad pattern in the second policy',
      aBoost({
        containerPolicies: [
          percentageIncrease('app', 1),
          { matchContainers: { type: 'RegexName', value: '(' }, percentageIncrease: { value: 1 } },
        ],
      }),
      `${POLICIES}[1].matchContainers.value`,
      'RE2',
    ],
    [
      'a policy without resources',
      withPolicy({}),
      `${POLICIES}[0]`,
      'exactly one of percentageIncrease',
    ],
    [
      'a policy with both',
      withPolicy({ percentageIncrease: { value: 1 }, fixedResources: { requests: '1' } }),
      `${POLICIES}[0]`,
      'exactly one of percentageIncrease',
    ],
    [
      'zero percent',
      withPolicy({ percentageIncrease: { value: 0 } }),
      `${POLICIES}[0].percentageIncrease.value`,
      'at least 1',
    ],
    [
      'a fraction of a percent',
      withPolicy({ percentageIncrease: { value: 1.5 } }),
      `${POLICIES}[0].percentageIncrease.value`,
      'whole number',
    ],
    [
      'a percentage as text',
      withPolicy({ percentageIncrease: { value: '50' } }),
      `${POLICIES}[0].percentageIncrease.value`,
      'whole number',
    ],
    [
      'a percentage beyond whole numbers',
      withPolicy({ percentageIncrease: { value: 2 ** 53 } }),
      `${POLICIES}[0].percentageIncrease.value`,
      'whole number',
    ],
    [
      'a percentage that is no object',
      withPolicy({ percentageIncrease: 50 }),
      `${POLICIES}[0].percentageIncrease.value`,
      'whole number',
    ],
    [
      'no fixed requests',
      fixed({ limits: '1' }),
      `${POLICIES}[0].fixedResources.requests`,
      'above 0',
    ],
    [
      'fixed requests of zero',
      fixed({ requests: '0' }),
      `${POLICIES}[0].fixedResources.requests`,
      'above 0',
    ],
    [
      'negative fixed requests',
      fixed({ requests: '-1' }),
      `${POLICIES}[0].fixedResources.requests`,
      'above 0',
    ],
    [
      'fixed requests that are no quantity',
      fixed({ requests: 'lots' }),
      `${POLICIES}[0].fixedResources.requests`,
      'above 0',
    ],
    [
      'negative fixed limits',
      fixed({ requests: '1', limits: '-2' }),
      `${POLICIES}[0].fixedResources.limits`,
      'above 0',
    ],
    [
      'fixed limits below the requests',
      fixed({ requests: '2', limits: '1999m' }),
      `${POLICIES}[0].fixedResources.limits`,
      'at least fixedResources.requests',
    ],
    [
      'no duration',
      aBoost({ durationPolicy: {} }),
      'spec.durationPolicy',
      'fixedDuration, podCondition',
    ],
    [
      'a duration that is no object',
      aBoost({ spec: { durationPolicy: 'Ready' } }),
      'spec.durationPolicy',
      'fixedDuration, podCondition',
    ],
    [
      'a duration of zero',
      aBoost({ durationPolicy: { fixedDuration: { unit: 'Seconds', value: 0 } } }),
      'spec.durationPolicy.fixedDuration.value',
      'at least 1',
    ],
    [
      'a duration in hours',
      aBoost({ durationPolicy: { fixedDuration: { unit: 'Hours', value: 1 } } }),
      'spec.durationPolicy.fixedDuration.unit',
      'Seconds or Minutes',
    ],
    [
      'a unit that every object has',
      aBoost({ durationPolicy: { fixedDuration: { unit: 'constructor', value: 1 } } }),
      'spec.durationPolicy.fixedDuration.unit',
      'Seconds or Minutes',
    ],
    [
      'a condition that is no object',
      aBoost({ durationPolicy: { podCondition: 'Ready' } }),
      'spec.durationPolicy.podCondition',
      'object',
    ],
    [
      'a condition without a type',
      aBoost({ durationPolicy: { podCondition: { status: 'True' } } }),
      'spec.durationPolicy.podCondition.type',
      'Ready',
    ],
    [
      'a condition with another status',
      aBoost({ durationPolicy: { podCondition: { type: 'Ready', status: 'true' } } }),
      'spec.durationPolicy.podCondition.status',
      'True, False or Unknown',
    ],
  ])('refuses %s at its own path', (_what, manifest, path, message) => {
    expect(issuesOf(manifest)).toEqual([{ path, message: expect.stringContaining(message) }]);
  });

  it('says everything that is wrong at once', () => {
    const paths = issuesOf({ spec: { selector: {} } }).map((issue) => issue.path);
    expect(paths).toEqual(['metadata.name', 'spec.selector', POLICIES, 'spec.durationPolicy']);
  });

  it.each([undefined, null, 7, 'text', [], {}, { metadata: [], spec: 'x', selector: 0 }])(
    'answers Invalid for %j',
    (manifest) => {
      expect(compileBoost(manifest).kind).toBe('Invalid');
    },
  );
});

describe('policyFor', () => {
  const boost = valid(
    aBoost({
      containerPolicies: [
        percentageIncrease('app', 1),
        {
          matchContainers: { type: 'RegexName', value: '^app.*' },
          percentageIncrease: { value: 2 },
        },
        { matchContainers: { type: 'RegexName', value: '.*' }, percentageIncrease: { value: 3 } },
      ],
    }),
  );

  it.each([
    ['app', 1],
    ['app2', 2],
    ['istio-proxy', 3],
  ])('gives %s the first policy that matches it', (name, percent) => {
    expect(policyFor(boost, name)?.resources).toEqual({ kind: 'PercentageIncrease', percent });
  });
});
