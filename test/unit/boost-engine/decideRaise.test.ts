/** Which pods that are there are raised in place, when, to what, and what keeps them from it. */
import { describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  decideRaise,
  ENDED_KEY,
  readPod,
  SKIPPED_KEY,
} from '../../../src/boost-engine';
import type { RaiseDecision, RaiseInput, RaiseSettings } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { aBoost, aContainer, aPod, RESOURCE_SHAPES, untilSeconds } from '../../support/builders';
import type { BoostOverrides, PodOverrides } from '../../support/builders';
import { applied, resourcesOf } from '../../support/engineLaws';

const CREATED = Date.parse('2026-06-01T12:00:00Z');
const SECOND = 1_000;
const NOW = CREATED + 10 * SECOND;
const settings: RaiseSettings = {
  maximumBoostMs: 3_600 * SECOND,
  unschedulableGraceMs: 500,
  catchUpMs: 300 * SECOND,
  catchUpBoostLagMs: 30 * SECOND,
  catchUpExcludedNamespaces: ['kube-system'],
};

const at = (ms: number) => new Date(ms).toISOString();
const condition = (type: string, status: string, rest: JsonObject = {}) => ({
  type,
  status,
  lastTransitionTime: at(CREATED),
  ...rest,
});
const scheduled = condition('PodScheduled', 'True');
const unscheduled = condition('PodScheduled', 'False', {
  reason: 'Unschedulable',
  message: '0/1 nodes are available: 1 Insufficient cpu.',
});

/** A pod that starts on its node, without a boost. */
function startingPod(overrides: PodOverrides = {}): JsonObject {
  const { containers = [aContainer()] } = overrides;
  return aPod({
    ...overrides,
    containers,
    metadata: {
      uid: 'pod-uid',
      resourceVersion: '7',
      generation: 1,
      creationTimestamp: at(CREATED),
      ...overrides.metadata,
    },
    spec: { nodeName: 'node', ...overrides.spec },
    status: {
      phase: 'Running',
      conditions: [scheduled, condition('Ready', 'False')],
      containerStatuses: readPod(aPod({ containers })).containers.map(({ name, cpu }) => ({
        name,
        allocatedResources: { cpu: cpu.request },
      })),
      ...overrides.status,
    },
  });
}

const storedBoost = (overrides: BoostOverrides = {}) =>
  aBoost({
    ...overrides,
    metadata: {
      uid: 'boost-uid',
      generation: 1,
      creationTimestamp: at(CREATED),
      ...overrides.metadata,
    },
  });

type Asked = Partial<Omit<RaiseInput, 'pod' | 'boosts' | 'settings'>> & {
  readonly boosts?: readonly JsonObject[];
  readonly settings?: Partial<RaiseSettings>;
};

function decide(pod: unknown, asked: Asked = {}): RaiseDecision {
  const { boosts = [storedBoost()], ...rest } = asked;
  return decideRaise({
    now: NOW,
    ...rest,
    pod,
    boosts: boosts.map(compileBoost),
    settings: { ...settings, ...asked.settings },
  });
}

/** The pod after the step, which must be of this kind, with the version that the API server gives it. */
function after(pod: JsonObject, kind: RaiseDecision['kind'], asked: Asked = {}): JsonObject {
  const decision = decide(pod, asked);
  expect(decision.kind).toBe(kind);
  return applied(pod, 'patch' in decision ? decision.patch : []);
}

const recordIn = (pod: JsonObject): unknown =>
  JSON.parse(readPod(pod).annotations?.get(BOOST_KEY) ?? 'null');

/** The pod with a record; by default one that the boost above would have written. */
function markedPod(record: JsonObject = {}, overrides: PodOverrides = {}): JsonObject {
  const whole = {
    state: 'Pending',
    timestamp: at(CREATED),
    initCPURequests: { app: '250m' },
    initCPULimits: { app: '1' },
    boostedCPURequests: { app: '500m' },
    boostedCPULimits: { app: '2' },
    uid: 'boost-uid',
    generation: 1,
    reason: 'Unschedulable',
    ...record,
  };
  return startingPod({
    labels: { app: 'app', [BOOST_KEY]: 'boost' },
    annotations: { [BOOST_KEY]: JSON.stringify(whole) },
    ...overrides,
  });
}

const RAISED = [aContainer({ resources: { requests: { cpu: '500m' }, limits: { cpu: '2' } } })];

describe('a pod that missed its boost', () => {
  it('is marked, raised and said to be active, in three steps', () => {
    const marked = after(startingPod(), 'MarkPending');
    expect(resourcesOf(marked)).toEqual(resourcesOf(startingPod()));
    expect(readPod(marked).labels?.get(BOOST_KEY)).toBe('boost');
    expect(recordIn(marked)).toEqual({
      state: 'Pending',
      timestamp: at(NOW),
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
      boostedCPURequests: { app: '500m' },
      boostedCPULimits: { app: '2' },
      uid: 'boost-uid',
      generation: 1,
      reason: 'CatchUp',
    });
    const raised = after(marked, 'Raise');
    expect(readPod(raised).containers[0]?.cpu).toEqual({ request: '500m', limit: '2' });
    const active = after(raised, 'MarkActive');
    expect(recordIn(active)).toMatchObject({ state: 'Active', reason: 'CatchUp' });
    expect(decide(active)).toMatchObject({ kind: 'Leave', code: 'HasRecord' });
  });

  it('gets what admission gives, container by container', () => {
    const containers = [
      aContainer(),
      aContainer({ name: 'app-2', resources: { requests: { cpu: '100m' } } }),
      aContainer({ name: 'web' }),
    ];
    const boosts = [
      storedBoost({
        containerPolicies: [
          {
            matchContainers: { type: 'RegexName', value: '^app' },
            percentageIncrease: { value: 33 },
          },
        ],
      }),
    ];
    const pod = startingPod({ containers });
    const raised = after(after(pod, 'MarkPending', { boosts }), 'Raise', { boosts });
    const created = aPod({ containers });
    const decision = decideBoost({
      pod: created,
      namespace: 'default',
      boosts: boosts.map(compileBoost),
      now: NOW,
    });
    expect(resourcesOf(raised)).toEqual(resourcesOf(applied(created, decision.patch)));
  });

  it('is judged as a whole: the first step fails when anything in it has changed', () => {
    const decision = decide(startingPod());
    const patch = 'patch' in decision ? decision.patch : [];
    expect(() => applied(startingPod({ metadata: { resourceVersion: '8' } }), patch)).toThrow();
    expect(() => applied(startingPod({ metadata: { uid: 'other' } }), patch)).toThrow();
  });

  const stale = (key: string) => ({ annotations: { [key]: 'Any' } });
  it.each<[string, PodOverrides, Asked]>([
    ['NoBoostMatches', { labels: { app: 'other' } }, {}],
    ['SkippedBefore', stale(SKIPPED_KEY), {}],
    ['HadItsBoost', stale(ENDED_KEY), {}],
    ['Ready', { status: { conditions: [scheduled, condition('Ready', 'True')] } }, {}],
    ['PodFinished', { status: { phase: 'Succeeded' } }, {}],
    ['PodFinished', { status: { phase: 'Failed' } }, {}],
    ['PodFinished', { metadata: { deletionTimestamp: at(NOW) } }, {}],
    ['TooOld', {}, { now: CREATED + 300 * SECOND }],
    ['TooOld', {}, { settings: { catchUpMs: 0 } }],
    ['TooOld', { metadata: { creationTimestamp: undefined } }, {}],
    [
      'OlderThanBoost',
      {},
      { boosts: [storedBoost({ metadata: { creationTimestamp: at(CREATED + 31 * SECOND) } })] },
    ],
    ['OlderThanBoost', {}, { boosts: [storedBoost({ metadata: { creationTimestamp: null } })] }],
    ['NamespaceExcluded', {}, { settings: { catchUpExcludedNamespaces: ['default'] } }],
    ['BoostOver', {}, { boosts: [storedBoost({ durationPolicy: untilSeconds(10) })] }],
    ['NotRevertible', {}, { notRevertible: new Set(['boost']) }],
    ['SystemCritical', { spec: { priority: 2_000_001_000 } }, {}],
    ['StaticPod', { annotations: { 'kubernetes.io/config.mirror': 'x' } }, {}],
    ['WindowsPod', { spec: { os: { name: 'windows' } } }, {}],
    ['WindowsPod', { spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } }, {}],
    ['PodLevelResources', { spec: { resources: { requests: { cpu: '1' } } } }, {}],
    ['ResourceClaims', { spec: { resourceClaims: [{ name: 'gpu' }] } }, {}],
    ['NoCpu', { containers: [aContainer({ resources: {} })] }, {}],
    [
      'GuaranteedPod',
      { containers: [aContainer({ resources: RESOURCE_SHAPES.Guaranteed })] },
      { settings: { guaranteed: 'Leave' } },
    ],
    [
      'RestartsOnResize',
      {
        containers: [
          aContainer({
            resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
          }),
        ],
      },
      {},
    ],
    [
      'TooManyContainers',
      { containers: Array.from({ length: 201 }, (_, i) => aContainer({ name: `app-${i}` })) },
      {},
    ],
    ['QuotaPresent', {}, { quotas: [{ spec: { hard: { cpu: '1', 'limits.cpu': '1' } } }] }],
    [
      'LimitRangeExceeded',
      {},
      { limitRanges: [{ spec: { limits: [{ type: 'Container', max: { cpu: '1500m' } }] } }] },
    ],
    [
      'LimitRangeWouldChangePod',
      { containers: [aContainer({ resources: { requests: { cpu: '250m' } } })] },
      { limitRanges: [{ spec: { limits: [{ type: 'Container', default: { memory: '1Gi' } }] } }] },
    ],
    ['NoRoomForRecord', { annotations: { big: 'x'.repeat(255 * 1024) } }, {}],
  ])('is left alone: %s', (code, overrides, asked) => {
    expect(decide(startingPod(overrides), asked)).toMatchObject({
      kind: 'Leave',
      code,
      message: expect.stringMatching(/./),
    });
  });

  it('is caught up to the last moment, and with a boost that is 30 s younger', () => {
    const boosts = [storedBoost({ metadata: { creationTimestamp: at(CREATED + 30 * SECOND) } })];
    const last = CREATED + 300 * SECOND - 1;
    expect(decide(startingPod(), { boosts, now: last }).kind).toBe('MarkPending');
  });

  it.each<[string, PodOverrides, string]>([
    ['a node', { spec: { nodeName: undefined }, status: { conditions: [] } }, 'Node'],
    [
      'a node that has room',
      { spec: { nodeName: '' }, status: { conditions: [unscheduled] } },
      'Node',
    ],
    ['its kubelet to take it in', { status: { containerStatuses: [] } }, 'Kubelet'],
    [
      'its kubelet to carry out what somebody else wants',
      { status: { conditions: [scheduled, condition('PodResizeInProgress', 'True')] } },
      'Kubelet',
    ],
  ])('waits for %s, until it is too old', (_what, overrides, what) => {
    expect(decide(startingPod(overrides))).toEqual({
      kind: 'Wait',
      for: what,
      until: CREATED + 300 * SECOND,
    });
  });

  it('waits no longer than its boost would last', () => {
    const boosts = [storedBoost({ durationPolicy: untilSeconds(60) })];
    const pod = startingPod({ status: { containerStatuses: [] } });
    expect(decide(pod, { boosts })).toMatchObject({ kind: 'Wait', until: CREATED + 60 * SECOND });
  });
});

describe('a pod whose boost is yet to come', () => {
  it('is raised by what the record says, where the boost still gives just that', () => {
    const decision = decide(markedPod());
    expect(decision).toMatchObject({
      kind: 'Raise',
      cause: 'Unschedulable',
      changes: [
        { container: 'app', resource: 'requests', from: '250m', to: '500m' },
        { container: 'app', resource: 'limits', from: '1', to: '2' },
      ],
    });
  });

  it('is marked again first where the boost gives something else by now, or the record is forged', () => {
    for (const record of [
      { boostedCPURequests: { app: '60' }, boostedCPULimits: { app: '60' } },
      { boostedCPURequests: { app: '300m' }, boostedCPULimits: {} },
      { boostedCPURequests: { app: '500m', web: '1' } },
      { uid: 'other', generation: 9 },
    ]) {
      const again = after(markedPod(record), 'MarkPending');
      expect(recordIn(again)).toEqual(recordIn(markedPod()));
      expect(after(again, 'Raise')).toBeDefined();
    }
  });

  it('says so where it is raised already, whoever did that', () => {
    const raised = markedPod({}, { containers: RAISED });
    expect(recordIn(after(raised, 'MarkActive'))).toMatchObject({ state: 'Active' });
  });

  it('is raised as one that no node had room for where the record, of an older version, tells no reason', () => {
    const marked = after(markedPod({ reason: undefined }), 'MarkPending');
    expect(recordIn(marked)).toMatchObject({ reason: 'Unschedulable' });
  });

  it.each<[string, JsonObject, PodOverrides, Asked]>([
    [
      'ChangedByOther',
      {},
      {
        containers: [
          aContainer({ resources: { requests: { cpu: '300m' }, limits: { cpu: '1' } } }),
        ],
      },
      {},
    ],
    ['NoBoostMatches', {}, { labels: { app: 'other', [BOOST_KEY]: 'boost' } }, {}],
    ['SystemCritical', {}, { spec: { nodeName: 'node', priority: 2_000_000_000 } }, {}],
    ['QuotaPresent', {}, {}, { quotas: [{ spec: { hard: { cpu: '1', 'limits.cpu': '1' } } }] }],
    ['NoRoomOnNode', {}, {}, { refusal: 'NoRoomOnNode' }],
    ['RaiseRefused', {}, {}, { refusal: 'RaiseRefused' }],
  ])('is left as it is after all, with the reason on it: %s', (code, record, overrides, asked) => {
    const pod = markedPod(record, overrides);
    const decision = decide(pod, asked);
    expect(decision).toMatchObject({ kind: 'GiveUp', code, message: expect.stringMatching(/./) });
    const left = readPod(after(pod, 'GiveUp', asked));
    expect(left.annotations).toEqual(new Map([[SKIPPED_KEY, code]]));
    expect(left.labels?.has(BOOST_KEY)).toBe(false);
    expect(resourcesOf(after(pod, 'GiveUp', asked))).toEqual(resourcesOf(pod));
  });

  it.each<[string, JsonObject, PodOverrides, Asked]>([
    ['HasRecord', { state: 'Active' }, {}, {}],
    ['HasRecord', { state: 'Reverted' }, {}, {}],
    ['HasRecord', { state: 'Infeasible' }, {}, {}],
    ['HasRecord', { state: 'Unknown' }, {}, {}],
    ['HasRecord', { boostedCPURequests: {}, boostedCPULimits: {} }, {}, {}],
    ['NoBoostMatches', {}, { labels: { app: 'app' } }, {}],
    ['NoBoostMatches', {}, {}, { boosts: [] }],
    ['NoBoostMatches', {}, {}, { boosts: [storedBoost({ name: 'other' })] }],
    ['NoBoostMatches', {}, {}, { boosts: [storedBoost({ namespace: 'other' })] }],
    ['NoBoostMatches', {}, {}, { boosts: [storedBoost({ containerPolicies: [] })] }],
    ['BoostOver', {}, { status: { conditions: [condition('Ready', 'True')] } }, {}],
    ['NotRevertible', {}, {}, { notRevertible: new Set(['boost']) }],
    ['PodFinished', {}, { status: { phase: 'Failed' } }, {}],
  ])('is not for this decision: %s', (code, record, overrides, asked) => {
    expect(decide(markedPod(record, overrides), asked)).toMatchObject({ kind: 'Leave', code });
  });

  it('waits for a node, however long, and for its kubelet', () => {
    const pod = markedPod({}, { spec: { nodeName: '' }, status: { conditions: [unscheduled] } });
    expect(decide(pod, { now: NOW + 86_400 * SECOND })).toEqual({ kind: 'Wait', for: 'Node' });
    const bound = markedPod({}, { status: { containerStatuses: [] } });
    expect(decide(bound)).toEqual({
      kind: 'Wait',
      for: 'Kubelet',
      until: CREATED + settings.maximumBoostMs,
    });
  });

  it('is not declared active while the CPU of a pod without a node is on its way back', () => {
    const pod = markedPod(
      {},
      { containers: RAISED, spec: { nodeName: '' }, status: { conditions: [unscheduled] } },
    );
    expect(decide(pod)).toMatchObject({ kind: 'Wait', for: 'Node' });
  });
});

describe('admission', () => {
  const pushing = { priority: 1_000, preemptionPolicy: 'PreemptLowerPriority' };
  const created = (spec: JsonObject, overrides: PodOverrides = {}) => aPod({ spec, ...overrides });
  const admit = (pod: JsonObject, boost: JsonObject = aBoost(), preemption?: 'Avoid' | 'Accept') =>
    decideBoost({
      pod,
      namespace: 'default',
      boosts: [compileBoost(boost)],
      ...(preemption === undefined ? {} : { preemption }),
      now: NOW,
    });

  it('marks a pod that could push others out, and raises nothing', () => {
    const pod = created(pushing);
    const decision = admit(pod);
    expect(decision).toMatchObject({ kind: 'Postpone', reason: 'MightPreempt' });
    const marked = applied(pod, decision.patch);
    expect(resourcesOf(marked)).toEqual(resourcesOf(pod));
    expect(recordIn(marked)).toMatchObject({ state: 'Pending', reason: 'MightPreempt' });
    expect(admit(marked)).toMatchObject({ kind: 'AlreadyBoosted' });
  });

  it('and it is raised once it is on a node', () => {
    const marked = applied(created(pushing), admit(created(pushing)).patch);
    const { annotations, labels } = readPod(marked);
    const stored = startingPod({
      labels: Object.fromEntries(labels ?? []),
      annotations: Object.fromEntries(annotations ?? []),
      spec: pushing,
    });
    const boosts = [aBoost({ metadata: { creationTimestamp: at(CREATED) } })];
    expect(decide(stored, { boosts })).toMatchObject({ kind: 'Raise', cause: 'MightPreempt' });
  });

  it.each<[string, JsonObject, JsonObject, 'Avoid' | 'Accept']>([
    ['it has no priority', {}, {}, 'Avoid'],
    ['its priority is zero', { priority: 0 }, {}, 'Avoid'],
    ['its priority is below zero', { priority: -1 }, {}, 'Avoid'],
    ['it never preempts', { priority: 1_000, preemptionPolicy: 'Never' }, {}, 'Avoid'],
    ['the boost allows it', pushing, { allowPreemption: true }, 'Avoid'],
    ['the settings allow it', pushing, {}, 'Accept'],
  ])('boosts at creation where %s', (_why, spec, more, preemption) => {
    expect(admit(created(spec), aBoost({ spec: more }), preemption).kind).toBe('Boost');
  });

  it('boosts at creation where only the limit is raised, which the scheduler does not look at', () => {
    const resources = { requests: { cpu: '1' }, limits: { cpu: '1500m' } };
    const pod = created(pushing, { containers: [aContainer({ resources })] });
    const policy = {
      matchContainers: { type: 'ExactName', value: 'app' },
      fixedResources: { requests: '1', limits: '2' },
    };
    expect(admit(pod, aBoost({ containerPolicies: [policy] })).kind).toBe('Boost');
  });

  it('leaves a pod of a system-critical class as it is', () => {
    const pod = created({ priority: 2_000_000_000 });
    expect(admit(pod)).toMatchObject({ kind: 'Skip', code: 'SystemCritical' });
  });

  it('refuses a boost that says neither yes nor no', () => {
    expect(compileBoost(aBoost({ spec: { allowPreemption: 'yes' } }))).toMatchObject({
      kind: 'Invalid',
      issues: [{ path: 'spec.allowPreemption' }],
    });
  });
});
