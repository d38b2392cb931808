/** What the validating webhook says about a boost, without a server. */

import { describe, expect, it } from '@jest/globals';
import { compileBoost } from '../../../src/boost-engine';
import { reviewBoost } from '../../../src/resources';
import type {
  StartupCPUBoost,
  StartupCPUBoostContainerPolicy,
  StartupCPUBoostDurationPolicy,
  StartupCPUBoostSelector,
} from '../../../src/resources';

const double = { percentageIncrease: { value: 100 } };
const web: StartupCPUBoostSelector = { matchLabels: { app: 'web' } };

describe('reviewBoost', () => {
  it('has nothing to say about a sound boost', () => {
    expect(reviewBoost({ boost: boost({}), others: [] })).toEqual({ errors: [], warnings: [] });
  });

  it('gives the errors of a boost that cannot be compiled, field by field', () => {
    const broken = boost({ policies: [regex('^app(')] });
    const { errors } = reviewBoost({ boost: broken, others: [] });
    expect(errors).toEqual([
      {
        path: 'spec.resourcePolicy.containerPolicies[0].matchContainers.value',
        message: expect.stringContaining('RE2'),
      },
    ]);
  });

  it.each([undefined, null, 7, 'text', [], {}, { spec: { resourcePolicy: [] } }])(
    'gives errors for %j instead of an exception',
    (value) => {
      expect(reviewBoost({ boost: value, others: [] }).errors).not.toEqual([]);
    },
  );
});

describe('warnings about container policies', () => {
  it('say what to write instead of containerName', () => {
    expect(warnings({ policies: [{ containerName: 'app', ...double }] })).toEqual([
      'spec.resourcePolicy.containerPolicies[0].containerName is deprecated; write matchContainers: {type: ExactName, value: "app"}',
    ]);
  });

  it('say it for a boost that is refused, too', () => {
    const refused = boost({ policies: [{ containerName: 'app' }] });
    const { errors, warnings } = reviewBoost({ boost: refused, others: [] });
    expect(errors).toHaveLength(1);
    expect(warnings).toHaveLength(1);
  });

  it.each<[string, StartupCPUBoostContainerPolicy, StartupCPUBoostContainerPolicy]>([
    ['a name after the same name', exact('app'), exact('app')],
    ['a name after a pattern that is found in it', regex('^ap'), exact('app')],
    ['a name after a pattern for everything', regex('.*'), exact('app')],
    ['a pattern after the same pattern', regex('^a.*p$'), regex('^a.*p$')],
    ['a pattern after a pattern for everything', regex('^.+$'), regex('^app')],
  ])('name a policy that never applies: %s', (_what, first, second) => {
    expect(warnings({ policies: [exact('other'), first, second] })).toEqual([
      'spec.resourcePolicy.containerPolicies[2] never applies: containerPolicies[1] matches the same containers and comes first',
    ]);
  });

  it.each<[string, StartupCPUBoostContainerPolicy, StartupCPUBoostContainerPolicy]>([
    ['two names', exact('app'), exact('app2')],
    ['a pattern that matches more than the name before it', exact('app'), regex('^app')],
    ['a name that the pattern before it is not found in', regex('^app$'), exact('app2')],
    ['two patterns that may match the same names', regex('^a'), regex('p$')],
  ])('leave alone a policy that may apply: %s', (_what, first, second) => {
    expect(warnings({ policies: [first, second] })).toEqual([]);
  });

  it.each(['*', 'app-*', 'App', '-app', 'a'.repeat(64)])(
    'say that no container can be named %s',
    (name) => {
      expect(warnings({ policies: [exact(name)] })).toEqual([
        expect.stringContaining('never applies: no container can be named'),
      ]);
    },
  );
});

describe('warnings about the selector', () => {
  it('say that an empty selector is for all pods of the namespace', () => {
    expect(warnings({ selector: {} })).toEqual([
      'selector is empty: the boost is for all pods of namespace demo; to choose pods write selector.matchLabels',
    ]);
  });

  it('name an older boost with the same selector as the one that counts', () => {
    const older = boost({ name: 'zeta', createdAt: '2026-01-01T00:00:00Z' });
    expect(warnings({ name: 'alpha' }, [older])).toEqual([
      'boost zeta selects the same pods; for pods of both only boost zeta counts: the oldest wins, then the first by name',
    ]);
  });

  it('name the first by name among boosts of the same second', () => {
    const createdAt = '2026-01-01T00:00:00Z';
    const other = boost({ name: 'zeta', createdAt });
    expect(warnings({ name: 'alpha', createdAt }, [other])).toEqual([
      'boost zeta selects the same pods; for pods of both only this boost counts: the oldest wins, then the first by name',
    ]);
  });

  it('see the same selector behind another spelling', () => {
    const spelled: StartupCPUBoostSelector = {
      matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }],
    };
    expect(warnings({}, [boost({ name: 'other', selector: spelled })])).toHaveLength(1);
  });

  it('tell a wider and a narrower selector apart', () => {
    const narrow: StartupCPUBoostSelector = { matchLabels: { app: 'web', tier: 'front' } };
    expect(warnings({ selector: narrow }, [boost({ name: 'wide' })])).toEqual([
      expect.stringContaining('boost wide selects all pods of this boost, and more'),
    ]);
    expect(warnings({}, [boost({ name: 'narrow', selector: narrow })])).toEqual([
      expect.stringContaining('boost narrow selects some of the pods of this boost'),
    ]);
  });

  it.each<[string, StartupCPUBoost]>([
    [
      'a boost whose pods may be others',
      boost({ name: 'o', selector: { matchLabels: { a: 'b' } } }),
    ],
    ['a boost of another namespace', boost({ name: 'other', namespace: 'prod' })],
    ['an older state of the same boost', boost({})],
    ['a boost that boosts nothing', boost({ name: 'other', policies: [] })],
  ])('do not speak of %s', (_what, other) => {
    expect(warnings({}, [other])).toEqual([]);
  });

  it('stay few however many boosts overlap', () => {
    const others = Array.from({ length: 1000 }, (_, index) => boost({ name: `other-${index}` }));
    const said = warnings({}, others);
    expect(said).toHaveLength(6);
    expect(said.at(-1)).toBe('995 more boosts overlap with this one');
  });
});

describe('warnings about the pod condition', () => {
  const condition = (type: string, more: StartupCPUBoostDurationPolicy = {}) =>
    warnings({ duration: { podCondition: { type, status: 'True' }, ...more } });

  it.each([['Redy'], ['ready'], ['Warm']])('name the end of a boost until %s', (type) => {
    expect(condition(type)).toEqual([
      `spec.durationPolicy.podCondition.type: Kubernetes sets no condition "${type}" by itself; unless somebody else does, the boost ends by MAXIMUM_BOOST_SECONDS only`,
    ]);
    expect(condition(type, { fixedDuration: { unit: 'Seconds', value: 60 } })).toEqual([
      expect.stringMatching(/the boost ends by fixedDuration only$/),
    ]);
  });

  it.each([['Ready'], ['ContainersReady'], ['Initialized'], ['example.com/warm']])(
    'leave out %s, which there is or somebody means',
    (type) => {
      expect(condition(type)).toEqual([]);
    },
  );
});

function exact(value: string): StartupCPUBoostContainerPolicy {
  return { matchContainers: { type: 'ExactName', value }, ...double };
}

function regex(value: string): StartupCPUBoostContainerPolicy {
  return { matchContainers: { type: 'RegexName', value }, ...double };
}

interface BoostParts {
  readonly name?: string;
  readonly namespace?: string;
  readonly createdAt?: string;
  readonly selector?: StartupCPUBoostSelector;
  readonly policies?: readonly StartupCPUBoostContainerPolicy[];
  readonly duration?: StartupCPUBoostDurationPolicy;
}

function boost(parts: BoostParts): StartupCPUBoost {
  const { name = 'spring-apps', namespace = 'demo', createdAt, selector = web } = parts;
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1alpha1',
    kind: 'StartupCPUBoost',
    metadata: {
      name,
      namespace,
      ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }),
    },
    selector,
    spec: {
      resourcePolicy: { containerPolicies: parts.policies ?? [exact('app')] },
      durationPolicy: parts.duration ?? { podCondition: { type: 'Ready', status: 'True' } },
    },
  };
}

function warnings(parts: BoostParts, others: readonly StartupCPUBoost[] = []): readonly string[] {
  return reviewBoost({ boost: boost(parts), others: others.map(compileBoost) }).warnings;
}
