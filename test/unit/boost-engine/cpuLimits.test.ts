/** What becomes of CPU limits: raised, kept, or removed for the boost and put back at its end. */
import { describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  decideRaise,
  decideRevert,
  fieldsOf,
  readPod,
} from '../../../src/boost-engine';
import type { BoostDecision, BoostInput } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { aBoost, aContainer, aPod, percentageIncrease } from '../../support/builders';
import { withUid } from '../../support/engineArbitraries';
import { applied, hasMarker, resourcesOf } from '../../support/engineLaws';
import { objectAt } from '../../support/objectAt';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const MEMORY = { requests: { memory: '64Mi' }, limits: { memory: '128Mi' } };

/** Resources with some memory, so that the class is Burstable whatever the CPU is. */
function cpu(request?: string, limit?: string): JsonObject {
  return {
    requests: { ...MEMORY.requests, ...(request === undefined ? {} : { cpu: request }) },
    limits: { ...MEMORY.limits, ...(limit === undefined ? {} : { cpu: limit }) },
  };
}

function podWith(...resources: readonly JsonObject[]): JsonObject {
  const names = ['app', 'web'];
  return aPod({
    containers: resources.map((each, index) =>
      aContainer({ name: names[index] ?? `more-${index}`, resources: each }),
    ),
  });
}

/** Doubles the CPU of every container, or sets it to fixed values. */
function boostWith(
  cpuLimits: unknown,
  policy: JsonObject = { percentageIncrease: { value: 100 } },
) {
  const containerPolicies = [{ matchContainers: { type: 'RegexName', value: '.*' }, ...policy }];
  return aBoost({ spec: { resourcePolicy: { containerPolicies, cpuLimits } } });
}

type Conditions = Pick<BoostInput, 'limitRanges' | 'quotas' | 'cpuLimits'>;

function decide(pod: JsonObject, boost: JsonObject, more: Conditions = {}): BoostDecision {
  const boosts = [compileBoost(boost)];
  return decideBoost({ pod, namespace: 'default', boosts, now: NOW, ...more });
}

function admitted(pod: JsonObject, boost: JsonObject, more: Conditions = {}): JsonObject {
  return applied(pod, decide(pod, boost, more).patch);
}

function recordOf(pod: JsonObject): JsonObject {
  const record: unknown = JSON.parse(readPod(pod).annotations?.get(BOOST_KEY) ?? 'null');
  return Object.fromEntries(fieldsOf(record));
}

/** The pod after the resize that ends its boost, as the API server would store it. */
function reverted(admittedPod: JsonObject): JsonObject {
  const pod = withUid(admittedPod);
  const decision = decideRevert({
    pod,
    boost: { kind: 'Absent', since: 0 },
    now: NOW,
    settings: {
      maximumBoostMs: 3_600_000,
      unschedulableGraceMs: 500,
      boostDeletedGraceMs: 5_000,
      limitRangeDefaults: 'Avoid',
      confirmTimeoutMs: 30_000,
    },
  });
  return applied(pod, 'patch' in decision ? decision.patch : []);
}

const containerRange = (item: JsonObject) => ({
  spec: { limits: [{ type: 'Container', ...item }] },
});

describe('a boost that removes limits', () => {
  it('takes them away beside the raised request, and its record says what they were', () => {
    const pod = admitted(podWith(cpu('250m', '1')), boostWith('Remove'));
    expect(resourcesOf(pod)).toEqual([cpu('500m')]);
    expect(recordOf(pod)).toMatchObject({
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
      boostedCPURequests: { app: '500m' },
      boostedCPULimits: { app: null },
    });
    expect(resourcesOf(reverted(pod))).toEqual([cpu('250m', '1')]);
  });

  it('puts them back where no other limit is left, and the API server has dropped the empty list', () => {
    const pod = admitted(
      podWith({ requests: { cpu: '250m' }, limits: { cpu: '1' } }),
      boostWith('Remove'),
    );
    const stored = {
      ...pod,
      spec: { containers: [aContainer({ resources: { requests: { cpu: '500m' } } })] },
    };
    expect(resourcesOf(reverted(stored))).toEqual([
      { requests: { cpu: '250m' }, limits: { cpu: '1' } },
    ]);
  });

  it('lets a request be larger than the limit was', () => {
    const boost = boostWith('Remove', { fixedResources: { requests: '3' } });
    expect(resourcesOf(admitted(podWith(cpu('250m', '1')), boost))).toEqual([cpu('3')]);
  });

  it('is a boost also where nothing else changes', () => {
    const boost = boostWith('Remove', { fixedResources: { requests: '100m' } });
    const pod = admitted(podWith(cpu('250m', '1')), boost);
    expect(resourcesOf(pod)).toEqual([cpu('250m')]);
    expect(decide(pod, boost)).toMatchObject({ kind: 'AlreadyBoosted', patch: [] });
    expect(resourcesOf(reverted(pod))).toEqual([cpu('250m', '1')]);
  });

  it('has nothing to remove from a container without a limit', () => {
    const pod = admitted(podWith(cpu('250m')), boostWith('Remove'));
    expect(resourcesOf(pod)).toEqual([cpu('500m')]);
    expect(recordOf(pod)).not.toHaveProperty('boostedCPULimits');
  });

  const guaranteed = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } };

  it.each<[string, JsonObject, Conditions, JsonObject]>([
    [
      'the pod is Guaranteed, and would not be any more',
      guaranteed,
      {},
      { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } },
    ],
    [
      'the pod would be BestEffort',
      { requests: { cpu: '0' }, limits: { cpu: '1' } },
      {},
      { requests: { cpu: '0' }, limits: { cpu: '2' } },
    ],
    [
      'there is no request beside it, of which the API server would make one',
      { limits: { cpu: '1' } },
      {},
      { limits: { cpu: '2' } },
    ],
    [
      'a LimitRange gives a limit to containers without one',
      cpu('250m', '1'),
      { limitRanges: [containerRange({ default: { cpu: '1' } })] },
      cpu('500m', '2'),
    ],
    [
      'a LimitRange wants a limit below its maximum',
      cpu('250m', '1'),
      { limitRanges: [containerRange({ max: { cpu: '4' } })] },
      cpu('500m', '2'),
    ],
    [
      'a LimitRange wants a limit for its ratio',
      cpu('250m', '1'),
      { limitRanges: [containerRange({ maxLimitRequestRatio: { cpu: '8' } })] },
      cpu('500m', '2'),
    ],
  ])('raises them where %s', (_why, resources, conditions, expected) => {
    const pod = admitted(podWith(resources), boostWith('Remove'), conditions);
    expect(resourcesOf(pod)).toEqual([expected]);
    expect(resourcesOf(reverted(pod))).toEqual([resources]);
  });

  it('keeps one that a quota counts', () => {
    const quotas = [{ spec: { hard: { 'limits.cpu': '10' } } }];
    const pod = admitted(podWith(cpu('250m', '1')), boostWith('Remove'), { quotas });
    expect(resourcesOf(pod)).toEqual([cpu('500m', '1')]);
  });

  it('removes one where a quota counts requests alone', () => {
    const quotas = [{ spec: { hard: { 'requests.cpu': '10' } } }];
    const pod = admitted(podWith(cpu('250m', '1')), boostWith('Remove'), { quotas });
    expect(resourcesOf(pod)).toEqual([cpu('250m')]);
    expect(resourcesOf(reverted(pod))).toEqual([cpu('250m', '1')]);
  });

  it('judges each container by itself', () => {
    const pod = podWith(cpu('250m', '1'), { requests: { memory: '1Gi' } });
    expect(resourcesOf(admitted(pod, boostWith('Remove')))).toEqual([
      cpu('500m'),
      { requests: { memory: '1Gi' } },
    ]);
  });
});

describe('a boost that keeps limits', () => {
  it('raises the request below them', () => {
    const pod = admitted(podWith(cpu('250m', '1')), boostWith('Keep'));
    expect(resourcesOf(pod)).toEqual([cpu('500m', '1')]);
    expect(resourcesOf(reverted(pod))).toEqual([cpu('250m', '1')]);
  });

  it('leaves a container alone whose request would be above its limit', () => {
    expect(decide(podWith(cpu('750m', '1')), boostWith('Keep'))).toMatchObject({
      kind: 'Skip',
      code: 'RequestAboveLimit',
    });
  });
});

describe('where the boost does not say, the settings do', () => {
  const boost = aBoost({ containerPolicies: [percentageIncrease('app', 100)] });

  it.each<[string, JsonObject, Conditions['cpuLimits'], JsonObject]>([
    ['by default they are raised', boost, undefined, cpu('500m', '2')],
    ['they are removed', boost, 'Remove', cpu('500m')],
    ['but the boost has the last word', boostWith('Raise'), 'Remove', cpu('500m', '2')],
  ])('%s', (_what, manifest, cpuLimits, expected) => {
    const more = cpuLimits === undefined ? {} : { cpuLimits };
    expect(resourcesOf(admitted(podWith(cpu('250m', '1')), manifest, more))).toEqual([expected]);
  });
});

describe('called again on a pod whose limit was removed', () => {
  const once = admitted(podWith(cpu('250m', '1')), boostWith('Remove'));

  const withLimit = (limit: string): JsonObject => ({
    ...once,
    spec: { containers: [aContainer({ resources: cpu('500m', limit) })] },
  });

  it('does nothing', () => {
    expect(decide(once, boostWith('Remove'))).toMatchObject({ kind: 'AlreadyBoosted', patch: [] });
  });

  it('leaves it away where the boost would raise it by now: admission lowers no boost', () => {
    expect(decide(once, boostWith('Raise'))).toMatchObject({ kind: 'AlreadyBoosted', patch: [] });
  });

  it('gives it back, raised, where a LimitRange would by now', () => {
    const limitRanges = [containerRange({ default: { cpu: '4' } })];
    const pod = admitted(once, boostWith('Remove'), { limitRanges });
    expect(resourcesOf(pod)).toEqual([cpu('500m', '2')]);
    expect(resourcesOf(reverted(pod))).toEqual([cpu('250m', '1')]);
  });

  it('gives it back where the container may not be boosted any more', () => {
    const pod = {
      ...once,
      spec: {
        containers: [
          aContainer({
            resources: cpu('500m'),
            resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
          }),
        ],
      },
    };
    const after = admitted(pod, boostWith('Remove'));
    expect(resourcesOf(after)).toEqual([cpu('250m', '1')]);
    expect(hasMarker(after)).toBe(false);
  });

  it('takes a limit that somebody has set meanwhile for the original', () => {
    const after = admitted(withLimit('3'), boostWith('Remove'));
    expect(resourcesOf(after)).toEqual([cpu('500m')]);
    expect(resourcesOf(reverted(after))).toEqual([cpu('250m', '3')]);
  });
});

describe('at the end of a boost', () => {
  const once = admitted(podWith(cpu('250m', '1')), boostWith('Remove'));

  const nowWith = (resources: JsonObject, record: JsonObject = {}): JsonObject => ({
    ...once,
    metadata: {
      ...objectAt(once, 'metadata'),
      annotations: { [BOOST_KEY]: JSON.stringify({ ...recordOf(once), ...record }) },
    },
    spec: { containers: [aContainer({ resources })] },
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['a limit that somebody has set stays', cpu('500m', '3'), {}, cpu('250m', '3')],
    ['one that is back already is left', cpu('500m', '1'), {}, cpu('250m', '1')],
    ['none is put under a request that somebody has set', cpu('2'), {}, cpu('2')],
    [
      'one that another webhook removed after it was raised stays away',
      cpu('500m'),
      { boostedCPULimits: { app: '2' } },
      cpu('250m'),
    ],
    [
      'one that another webhook removed beside a raised request stays away',
      cpu('500m'),
      { boostedCPULimits: undefined },
      cpu('250m'),
    ],
    ['a record that knows no original gives none', cpu('500m'), { initCPULimits: {} }, cpu('250m')],
    [
      'an original of zero, which means no limit, gives none',
      cpu('500m'),
      { initCPULimits: { app: '0' } },
      cpu('250m'),
    ],
  ])('%s', (_what, present, record, expected) => {
    expect(resourcesOf(reverted(nowWith(present, record)))).toEqual([expected]);
  });
});

describe('in place, where a resize can take no limit away', () => {
  function raised(boost: JsonObject, resources: JsonObject): readonly unknown[] {
    let pod = aPod({
      containers: [aContainer({ resources })],
      metadata: {
        uid: 'pod-uid',
        resourceVersion: '7',
        creationTimestamp: new Date(NOW).toISOString(),
      },
      spec: { nodeName: 'node' },
      status: { containerStatuses: [{ name: 'app', allocatedResources: { cpu: '250m' } }] },
    });
    const stored = {
      ...boost,
      metadata: { ...objectAt(boost, 'metadata'), creationTimestamp: new Date(NOW).toISOString() },
    };
    for (const kind of ['MarkPending', 'Raise']) {
      const decision = decideRaise({
        pod,
        boosts: [compileBoost(stored)],
        now: NOW,
        settings: {
          maximumBoostMs: 3_600_000,
          unschedulableGraceMs: 500,
          catchUpMs: 300_000,
          catchUpBoostLagMs: 30_000,
          catchUpExcludedNamespaces: [],
        },
      });
      expect(decision.kind).toBe(kind);
      pod = applied(pod, 'patch' in decision ? decision.patch : []);
    }
    return resourcesOf(pod);
  }

  it.each<[string, JsonObject]>([
    ['Remove', cpu('500m', '2')],
    ['Raise', cpu('500m', '2')],
    ['Keep', cpu('500m', '1')],
  ])('%s gives what it can', (cpuLimits, expected) => {
    expect(raised(boostWith(cpuLimits), cpu('250m', '1'))).toEqual([expected]);
  });
});

describe('the word of a boost', () => {
  it.each([['raise'], [''], [true], [{}], [['Remove']]])('cannot be %j', (cpuLimits) => {
    expect(compileBoost(boostWith(cpuLimits))).toMatchObject({
      kind: 'Invalid',
      issues: [
        {
          path: 'spec.resourcePolicy.cpuLimits',
          message: 'must be one of Raise, Remove, Keep',
        },
      ],
    });
  });

  it.each([[undefined], [null]])('may be left out, as %j', (cpuLimits) => {
    const compiled = compileBoost(boostWith(cpuLimits));
    expect(compiled.kind).toBe('Valid');
    expect(compiled).not.toHaveProperty('cpuLimits');
  });
});
