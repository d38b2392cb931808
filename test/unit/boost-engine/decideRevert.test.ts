/** What becomes of a boosted pod, whatever has happened to it, its record and its boost. */
import { describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideRevert,
  ENDED_KEY,
  readPod,
  SKIPPED_KEY,
} from '../../../src/boost-engine';
import type {
  BoostKnowledge,
  Raising,
  RevertDecision,
  RevertSettings,
} from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { aBoost, aContainer, aPod, UNTIL_READY } from '../../support/builders';
import { applied, hasMarker, resourcesOf } from '../../support/engineLaws';

const SCHEDULED = Date.parse('2026-06-01T12:00:00Z');
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const MAXIMUM = 60 * MINUTE;
const settings: RevertSettings = {
  maximumBoostMs: MAXIMUM,
  unschedulableGraceMs: 500,
  boostDeletedGraceMs: 10 * SECOND,
  limitRangeDefaults: 'Avoid',
  confirmTimeoutMs: 30 * SECOND,
};

const RECORD = {
  state: 'Active',
  timestamp: '2026-06-01T11:59:00.000Z',
  initCPURequests: { app: '250m' },
  initCPULimits: { app: '1' },
  boostedCPURequests: { app: '500m' },
  boostedCPULimits: { app: '2' },
  uid: 'u',
  generation: 1,
};

const at = (ms: number) => new Date(ms).toISOString();
const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: at(SCHEDULED) };
const ready = { type: 'Ready', status: 'True', lastTransitionTime: at(SCHEDULED) };

const resources = (request?: string, limit?: string): JsonObject => ({
  requests: { memory: '64Mi', ...(request === undefined ? {} : { cpu: request }) },
  limits: { memory: '128Mi', ...(limit === undefined ? {} : { cpu: limit }) },
});
const BOOSTED = resources('500m', '2');
const ORIGINAL = resources('250m', '1');

interface Boosted {
  readonly record?: unknown;
  readonly resources?: JsonObject;
  readonly containers?: readonly JsonObject[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly conditions?: readonly JsonObject[];
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
}

/** A pod as it runs: boosted, scheduled, with a kubelet that has seen all of it. */
function boostedPod(overrides: Boosted = {}): JsonObject {
  const { record = RECORD } = overrides;
  const containers = overrides.containers ?? [
    aContainer({ resources: overrides.resources ?? BOOSTED }),
  ];
  return aPod({
    labels: overrides.labels ?? { app: 'app', [BOOST_KEY]: 'boost' },
    annotations: { [BOOST_KEY]: typeof record === 'string' ? record : JSON.stringify(record) },
    containers,
    metadata: { uid: 'pod-uid', generation: 3, ...overrides.metadata },
    spec: { nodeName: 'node', ...overrides.spec },
    status: {
      phase: 'Running',
      observedGeneration: 3,
      conditions: [scheduled, ...(overrides.conditions ?? [])],
      containerStatuses: readPod(aPod({ containers })).containers.map(({ name, cpu }) => ({
        name,
        allocatedResources: cpu.request === undefined ? {} : { cpu: cpu.request },
      })),
      ...overrides.status,
    },
  });
}

const present = (durationPolicy: JsonObject = UNTIL_READY): BoostKnowledge => ({
  kind: 'Present',
  boost: compileBoost(aBoost({ durationPolicy })),
});
const ABSENT: BoostKnowledge = { kind: 'Absent', since: SCHEDULED };
const UNKNOWN: BoostKnowledge = { kind: 'Unknown' };

interface Asked {
  readonly boost?: BoostKnowledge;
  readonly now?: number;
  readonly waitingSince?: number;
  readonly limitRanges?: readonly unknown[];
  readonly raising?: Raising;
  readonly settings?: Partial<RevertSettings>;
}

function decide(pod: unknown, asked: Asked = {}): RevertDecision {
  const { boost = present(), now = SCHEDULED, ...rest } = asked;
  return decideRevert({ pod, boost, now, ...rest, settings: { ...settings, ...asked.settings } });
}

function recordIn(pod: JsonObject): unknown {
  return JSON.parse(readPod(pod).annotations?.get(BOOST_KEY) ?? 'null');
}

/** The pod after the patch of the decision, which must have one. */
function after(pod: JsonObject, decision: RevertDecision): JsonObject {
  if (!('patch' in decision)) throw new Error(`${decision.kind} has no patch`);
  return applied(pod, decision.patch);
}

describe('a boosted pod', () => {
  const fixed = { fixedDuration: { unit: 'Seconds', value: 60 } };
  const both = { ...UNTIL_READY, ...fixed };
  const wait = (until: number) => ({ kind: 'Wait', for: 'End', until });
  const resize = (reason: string, endedAt?: number) => ({
    kind: 'Resize',
    reason,
    ...(endedAt === undefined ? {} : { endedAt }),
  });

  it.each<[string, JsonObject, readonly JsonObject[], number, object]>([
    ['condition, not met', UNTIL_READY, [], SCHEDULED, wait(SCHEDULED + MAXIMUM)],
    ['condition, met', UNTIL_READY, [ready], SCHEDULED, resize('ConditionMet')],
    ['fixed, before', fixed, [ready], SCHEDULED + MINUTE - 1, wait(SCHEDULED + MINUTE)],
    ['fixed, over', fixed, [], SCHEDULED + MINUTE, resize('DurationElapsed', SCHEDULED + MINUTE)],
    ['both, condition first', both, [ready], SCHEDULED, resize('ConditionMet')],
    [
      'both, time first',
      both,
      [],
      SCHEDULED + MINUTE,
      resize('DurationElapsed', SCHEDULED + MINUTE),
    ],
    [
      'the maximum',
      UNTIL_READY,
      [],
      SCHEDULED + MAXIMUM,
      resize('MaximumElapsed', SCHEDULED + MAXIMUM),
    ],
  ])('goes back by %s', (_what, duration, conditions, now, expected) => {
    const decision = decide(boostedPod({ conditions }), { boost: present(duration), now });
    expect(decision).toMatchObject(expected);
  });

  it.each<[string, BoostKnowledge, number, object]>([
    [
      'deleted, within the grace',
      ABSENT,
      SCHEDULED + 10 * SECOND - 1,
      wait(SCHEDULED + 10 * SECOND),
    ],
    [
      'deleted, grace over',
      ABSENT,
      SCHEDULED + 10 * SECOND,
      resize('BoostDeleted', SCHEDULED + 10 * SECOND),
    ],
    ['wanted by nobody any more', { kind: 'Unwanted' }, SCHEDULED, resize('RevertAll')],
    ['not known', UNKNOWN, SCHEDULED + MINUTE, wait(SCHEDULED + MAXIMUM)],
    ['not known, at the maximum', UNKNOWN, SCHEDULED + MAXIMUM, resize('MaximumElapsed')],
  ])('whose boost is %s', (_what, boost, now, expected) => {
    expect(decide(boostedPod({ conditions: [ready] }), { boost, now })).toMatchObject(expected);
  });

  it('whose boost has become invalid goes back at the maximum', () => {
    const boost: BoostKnowledge = { kind: 'Present', boost: compileBoost({}) };
    const pod = boostedPod({ conditions: [ready] });
    expect(decide(pod, { boost })).toEqual(wait(SCHEDULED + MAXIMUM));
    expect(decide(pod, { boost, now: SCHEDULED + MAXIMUM })).toMatchObject(
      resize('MaximumElapsed'),
    );
  });

  it.each<[string, Boosted, string]>([
    ['its label is gone', { labels: { app: 'app' } }, 'LabelRemoved'],
    ['it has succeeded', { status: { phase: 'Succeeded' } }, 'PodFinished'],
    ['it has failed', { status: { phase: 'Failed' } }, 'PodFinished'],
  ])('goes back at once when %s, whatever is known of the boost', (_what, overrides, reason) => {
    for (const boost of [present(), ABSENT, UNKNOWN]) {
      expect(decide(boostedPod(overrides), { boost })).toMatchObject(resize(reason));
    }
  });

  it('gets exactly its originals, and keeps its marker until the kubelet has confirmed', () => {
    const pod = boostedPod({ conditions: [ready] });
    const resized = after(pod, decide(pod));
    expect(resourcesOf(resized)).toEqual([ORIGINAL]);
    expect(hasMarker(resized)).toBe(true);
  });

  it.each<[string, Boosted]>([
    ['no marker', { metadata: { annotations: {} } }],
    ['the label alone', { metadata: { annotations: { team: 'a' } } }],
    ['a deletion under way', { metadata: { deletionTimestamp: at(SCHEDULED) } }],
  ])('with %s is left alone', (_what, overrides) => {
    expect(decide(boostedPod({ conditions: [ready], ...overrides }))).toEqual({ kind: 'Nothing' });
  });
});

describe('a pod that no node has room for', () => {
  const lacking = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: '0/1 nodes are available: 1 Insufficient cpu.',
    lastTransitionTime: at(SCHEDULED),
  };
  const pending = (overrides: Boosted = {}) =>
    boostedPod({
      spec: { nodeName: '' },
      ...overrides,
      status: { phase: 'Pending', conditions: [lacking], containerStatuses: [] },
    });

  it('keeps its boost for the grace, and then gets its own CPU back', () => {
    expect(decide(pending(), { now: SCHEDULED + 499 })).toEqual({
      kind: 'Wait',
      for: 'End',
      until: SCHEDULED + 500,
    });
    const mark = decide(pending(), { now: SCHEDULED + 500 });
    expect(mark).toMatchObject({ kind: 'MarkPending', reason: 'Unschedulable' });
    const marked = after(pending(), mark);
    expect(recordIn(marked)).toEqual({ ...RECORD, state: 'Pending', reason: 'Unschedulable' });
    const decision = decide(marked, { now: SCHEDULED + 500 });
    expect(decision).toMatchObject({ kind: 'Resize', reason: 'Unschedulable' });
    expect(resourcesOf(after(marked, decision))).toEqual([ORIGINAL]);
  });

  it('is marked once, also where its CPU is back already, and then waits for a node', () => {
    const pod = pending({ resources: ORIGINAL });
    const decision = decide(pod, { now: SCHEDULED + SECOND });
    expect(decision).toMatchObject({ kind: 'MarkPending', reason: 'Unschedulable' });
    const marked = after(pod, decision);
    expect(resourcesOf(marked)).toEqual([ORIGINAL]);
    expect(decide(marked, { now: SCHEDULED + SECOND })).toMatchObject({
      kind: 'Wait',
      for: 'Node',
    });
  });

  it('loses its marker once it has a node', () => {
    const pod = boostedPod({ record: { ...RECORD, state: 'Pending' }, resources: ORIGINAL });
    expect(decide(pod)).toMatchObject({ kind: 'Clear', reason: 'Unschedulable' });
  });

  it('loses its marker without a node when its boost is deleted, at the announced moment', () => {
    const pod = pending({ record: { ...RECORD, state: 'Pending' }, resources: ORIGINAL });
    const waiting = decide(pod, { boost: ABSENT, now: SCHEDULED + SECOND });
    expect(waiting).toEqual({ kind: 'Wait', for: 'Node', until: SCHEDULED + 10 * SECOND });
    expect(decide(pod, { boost: ABSENT, now: SCHEDULED + 10 * SECOND })).toMatchObject({
      kind: 'Clear',
      reason: 'BoostDeleted',
    });
  });
});

describe('a boost that is yet to come', () => {
  const PENDING = { ...RECORD, state: 'Pending', reason: 'MightPreempt' };
  const waiting = (overrides: Boosted = {}) =>
    boostedPod({ record: PENDING, resources: ORIGINAL, ...overrides });
  const until = SCHEDULED + MAXIMUM;

  it.each<[string, Asked, RevertDecision | object]>([
    ['is for decideRaise', { raising: 'On' }, { kind: 'Wait', for: 'Raise', until }],
    ['waits while that is not known', { raising: 'Unknown' }, { kind: 'Wait', for: 'End', until }],
    ['is over where nothing is raised', { raising: 'Off' }, { kind: 'Clear', reason: 'NotRaised' }],
    [
      'waits while its boost may come back',
      { raising: 'On', boost: ABSENT },
      { kind: 'Wait', for: 'End', until: SCHEDULED + 10 * SECOND },
    ],
    ['waits while its boost is not known', { raising: 'On', boost: UNKNOWN }, { for: 'End' }],
    [
      'waits while its boost is invalid',
      { raising: 'On', boost: { kind: 'Present', boost: compileBoost({}) } },
      { kind: 'Wait', for: 'End', until },
    ],
    [
      'is over with its boost',
      { raising: 'On', boost: ABSENT, now: SCHEDULED + 10 * SECOND },
      { kind: 'Clear', reason: 'BoostDeleted' },
    ],
    [
      'is over when its time is',
      { raising: 'On', now: until },
      { kind: 'Clear', reason: 'MaximumElapsed' },
    ],
  ])('%s', (_what, asked, expected) => {
    expect(decide(waiting(), asked)).toMatchObject(expected);
  });

  it('waits for a node, whether it is raised later or not', () => {
    for (const raising of ['On', 'Off', 'Unknown'] as const) {
      const pod = waiting({ spec: { nodeName: '' }, status: { conditions: [] } });
      expect(decide(pod, { raising })).toEqual({ kind: 'Wait', for: 'Node' });
    }
  });

  it('is over when the pod was ready before', () => {
    const decision = decide(waiting({ conditions: [ready] }), { raising: 'On' });
    expect(decision).toMatchObject({ kind: 'Clear', reason: 'ConditionMet' });
    const cleared = after(waiting({ conditions: [ready] }), decision);
    expect(readPod(cleared).annotations).toEqual(new Map([[ENDED_KEY, 'ConditionMet']]));
  });

  it("of upstream's making is over as soon as the pod has a node: it names no values", () => {
    const record = { state: 'Pending', initCPURequests: { app: '250m' } };
    const pod = waiting({ record, resources: resources('250m') });
    expect(decide(pod, { raising: 'On' })).toMatchObject({ kind: 'Clear' });
  });

  it('and that came, but was not noted yet, is noted before it goes back', () => {
    const raised = waiting({ resources: BOOSTED });
    expect(decide(raised, { raising: 'On' })).toEqual({ kind: 'Wait', for: 'Raise', until });
    const over = waiting({ resources: BOOSTED, conditions: [ready] });
    const mark = decide(over, { raising: 'On' });
    expect(mark).toMatchObject({ kind: 'MarkActive', reason: 'ConditionMet' });
    const marked = after(over, mark);
    expect(recordIn(marked)).toEqual({ ...PENDING, state: 'Active' });
    expect(resourcesOf(after(marked, decide(marked)))).toEqual([ORIGINAL]);
  });
});

describe('a raise in place that the node has no room for', () => {
  const RAISED = { ...RECORD, reason: 'CatchUp' };
  const held = (reason: string) => ({ type: 'PodResizePending', status: 'True', reason });
  const statuses = (cpu: string) => [{ name: 'app', allocatedResources: { cpu } }];
  const refused = (record: object, reason = 'Deferred', overrides: Boosted = {}) =>
    boostedPod({
      record,
      conditions: [held(reason)],
      ...overrides,
      status: {
        conditions: [scheduled, held(reason)],
        containerStatuses: statuses('250m'),
        ...overrides.status,
      },
    });

  it.each(['Deferred', 'Infeasible'])('(%s) goes back at once, noted first', (reason) => {
    for (const record of [RAISED, { ...RAISED, state: 'Pending' }]) {
      const pod = refused(record, reason);
      const mark = decide(pod, { raising: 'On' });
      expect(mark).toMatchObject({ kind: 'MarkInfeasible', reason: 'NoRoomOnNode' });
      const marked = after(pod, mark);
      expect(recordIn(marked)).toEqual({ ...RAISED, state: 'Infeasible' });
      const decision = decide(marked, { raising: 'On' });
      expect(decision).toMatchObject({ kind: 'Resize', reason: 'NoRoomOnNode' });
      expect(resourcesOf(after(marked, decision))).toEqual([ORIGINAL]);
    }
  });

  it('goes back, once that is noted, although the node has room by then', () => {
    const pod = boostedPod({ record: { ...RAISED, state: 'Infeasible' } });
    expect(decide(pod)).toMatchObject({ kind: 'Resize', reason: 'NoRoomOnNode' });
  });

  it('and is back, is cleared with the reason, when the kubelet has seen it', () => {
    const record = { ...RAISED, state: 'Infeasible' };
    const stale = refused(record, 'Infeasible', {
      resources: ORIGINAL,
      status: { observedGeneration: 2 },
    });
    expect(decide(stale)).toMatchObject({ kind: 'Wait', for: 'Kubelet' });
    const back = boostedPod({ record, resources: ORIGINAL, conditions: [ready] });
    expect(decide(back)).toMatchObject({ kind: 'Clear', reason: 'NoRoomOnNode' });
  });

  it.each<[string, object, Boosted]>([
    ['boosts at creation', RECORD, {}],
    ['resizes of others', RAISED, { status: { containerStatuses: statuses('500m') } }],
    ['an answer to an earlier resize', RAISED, { status: { observedGeneration: 2 } }],
  ])('is not confused with %s', (_what, record, overrides) => {
    expect(decide(refused(record, 'Deferred', overrides))).toMatchObject({
      kind: 'Wait',
      for: 'End',
    });
  });
});

describe('a value that somebody else has changed', () => {
  it.each<[string, JsonObject, JsonObject, readonly string[]]>([
    ['the limit raised', resources('500m', '3'), resources('250m', '3'), ['app limits']],
    ['the request raised', resources('750m', '2'), resources('750m', '1'), ['app requests']],
    ['the request lowered', resources('300m', '2'), resources('300m', '1'), ['app requests']],
    [
      'the request below its original',
      resources('100m', '2'),
      resources('100m', '1'),
      ['app requests'],
    ],
    [
      'the request above the original limit',
      resources('1500m', '2'),
      resources('1500m', '2'),
      ['app requests', 'app limits'],
    ],
    ['both', resources('600m', '3'), resources('600m', '3'), ['app requests', 'app limits']],
    ['the request brought back', resources('250m', '2'), ORIGINAL, []],
    ['nothing but the words', resources('0.5', '2000m'), ORIGINAL, []],
  ])('%s: stays', (_what, before, expected, changedByOther) => {
    const pod = boostedPod({ conditions: [ready], resources: before });
    const decision = decide(pod);
    const resized = decision.kind === 'Resize' ? after(pod, decision) : pod;
    expect(resourcesOf(resized)).toEqual([expected]);
    const closing = boostedPod({ conditions: [ready], resources: expected });
    expect(decide(closing)).toMatchObject({ kind: 'Clear', changedByOther });
  });

  it('does not make the pod Guaranteed, which the API server would refuse', () => {
    const memory = { memory: '64Mi' };
    const record = {
      initCPURequests: { app: '1' },
      initCPULimits: { app: '2' },
      boostedCPULimits: { app: '4' },
    };
    const raised = { requests: { ...memory, cpu: '2' }, limits: { ...memory, cpu: '4' } };
    const pod = boostedPod({ conditions: [ready], record, resources: raised });
    expect(decide(pod)).toMatchObject({
      kind: 'Clear',
      changedByOther: ['app requests', 'app limits'],
    });
  });
});

describe('a limit that would make the pod Guaranteed, which the API server refuses', () => {
  const cpuAndMemory = (request: string, limit: string | undefined, memory: string) => ({
    requests: { cpu: request, memory },
    limits: { memory: '2Gi', ...(limit === undefined ? {} : { cpu: limit }) },
  });
  const removed = {
    initCPURequests: { app: '1' },
    initCPULimits: { app: '1' },
    boostedCPURequests: { app: '2' },
    boostedCPULimits: { app: null },
  };
  const raised = { ...removed, boostedCPULimits: { app: '3' } };
  const other = aContainer({ name: 'log', resources: cpuAndMemory('1', '1', '2Gi') });

  it.each<[string, object, JsonObject, readonly JsonObject[], string | undefined]>([
    [
      'memory set by others, limit removed',
      removed,
      cpuAndMemory('2', undefined, '2Gi'),
      [],
      undefined,
    ],
    ['memory set by others, limit raised', raised, cpuAndMemory('2', '3', '2Gi'), [], '3'],
    [
      'another container changed by others',
      removed,
      cpuAndMemory('2', undefined, '2Gi'),
      [other],
      undefined,
    ],
  ])('%s: the request goes back without it', (_what, record, present, others, limit) => {
    const withApp = (own: JsonObject) => [aContainer({ resources: own }), ...others];
    const pod = boostedPod({ conditions: [ready], record, containers: withApp(present) });
    const decision = decide(pod);
    const reverted = cpuAndMemory('1', limit, '2Gi');
    expect(resourcesOf(after(pod, decision))[0]).toEqual(reverted);
    const closing = boostedPod({ conditions: [ready], record, containers: withApp(reverted) });
    expect(decide(closing)).toMatchObject({ kind: 'Clear', changedByOther: ['app limits'] });
  });

  it('comes back where it does not', () => {
    const pod = boostedPod({
      conditions: [ready],
      record: removed,
      resources: cpuAndMemory('2', undefined, '1Gi'),
    });
    expect(resourcesOf(after(pod, decide(pod)))).toEqual([cpuAndMemory('1', '1', '1Gi')]);
  });
});

describe("upstream's record, with originals only", () => {
  const record = (requests?: JsonObject, limits?: JsonObject) => ({
    state: 'Active',
    timestamp: '2024-03-01T10:00:00Z',
    initCPURequests: requests ?? null,
    initCPULimits: limits ?? null,
  });

  it.each<[string, unknown, JsonObject, JsonObject]>([
    ['both are lowered', record({ app: '250m' }, { app: '1' }), BOOSTED, ORIGINAL],
    ['a request without a limit', record({ app: '250m' }), resources('500m'), resources('250m')],
    [
      'a removed limit comes back',
      record({ app: '250m' }, { app: '1' }),
      resources('500m'),
      ORIGINAL,
    ],
    [
      'a removed limit of an unraised request',
      record({ app: '250m' }, { app: '1' }),
      resources('250m'),
      ORIGINAL,
    ],
    ['without a state', { initCPURequests: { app: '250m' } }, resources('500m'), resources('250m')],
    [
      'a value below its original stays',
      record({ app: '750m' }, { app: '1' }),
      BOOSTED,
      resources('500m', '1'),
    ],
  ])('%s', (_what, written, before, expected) => {
    const pod = boostedPod({ conditions: [ready], record: written, resources: before });
    expect(resourcesOf(after(pod, decide(pod)))).toEqual([expected]);
  });

  it('brings a removed limit back where the whole map of limits is absent', () => {
    const pod = boostedPod({
      conditions: [ready],
      record: record({ app: '250m' }, { app: '1' }),
      resources: { requests: { cpu: '500m' } },
    });
    expect(resourcesOf(after(pod, decide(pod)))).toEqual([
      { requests: { cpu: '250m' }, limits: { cpu: '1' } },
    ]);
  });
});

describe('a forged record', () => {
  it.each<[string, unknown, JsonObject]>([
    ['a request for a container without one', { initCPURequests: { app: '100' } }, resources()],
    [
      'a limit for a container without CPU, which would become a request',
      { initCPULimits: { app: '100' } },
      resources(),
    ],
    ['a limit below the request', { initCPULimits: { app: '100m' } }, resources('500m')],
    [
      'a request above the present one',
      { initCPURequests: { app: '100' }, boostedCPURequests: { app: '500m' } },
      BOOSTED,
    ],
    [
      'a limit above the present one',
      { initCPULimits: { app: '100' }, boostedCPULimits: { app: '2' } },
      BOOSTED,
    ],
    ['containers that the pod does not have', { initCPURequests: { web: '1m' } }, BOOSTED],
    ['a value finer than the API server keeps', { initCPURequests: { app: '499500u' } }, BOOSTED],
    ['a limit of zero, which means no limit', { initCPULimits: { app: '0' } }, resources('0', '2')],
    ['nothing at all', {}, BOOSTED],
  ])('with %s changes nothing, and is cleared', (_what, record, present) => {
    const pod = boostedPod({ conditions: [ready], record, resources: present });
    const decision = decide(pod);
    expect(decision.kind).toBe('Clear');
    const cleared = after(pod, decision);
    expect(resourcesOf(cleared)).toEqual([present]);
    expect(hasMarker(cleared)).toBe(false);
  });

  it('lowers at most what it names', () => {
    const record = { initCPURequests: { app: '10m' }, boostedCPURequests: { app: '500m' } };
    const pod = boostedPod({ conditions: [ready], record });
    expect(resourcesOf(after(pod, decide(pod)))).toEqual([resources('10m', '2')]);
  });

  it.each([
    '',
    'junk',
    '[]',
    'null',
    '{"state":"Other"}',
    '{"initCPURequests":{"app":"-1"}}',
    'x'.repeat(70_000),
  ])('that cannot be read (%#) stops the revert, and says why', (record) => {
    for (const boost of [present(), ABSENT, UNKNOWN]) {
      expect(decide(boostedPod({ conditions: [ready], record }), { boost })).toEqual({
        kind: 'Stuck',
        why: 'RecordUnreadable',
        message: expect.stringMatching(/^the record on the pod cannot be read.*: ./),
      });
    }
  });
});

describe('of several containers', () => {
  const containers = [
    aContainer({ name: 'proxy', resources: resources('1', '2') }),
    aContainer({ resources: BOOSTED }),
    aContainer({ name: 'web', resources: resources('2', '4') }),
  ];

  it('only those in the record change, wherever they stand', () => {
    const record = {
      ...RECORD,
      initCPURequests: { web: '1', app: '250m', gone: '1' },
      initCPULimits: { web: '2', app: '1' },
      boostedCPURequests: { web: '2', app: '500m', gone: '2' },
      boostedCPULimits: { web: '4', app: '2' },
    };
    const pod = boostedPod({ conditions: [ready], record, containers });
    const decision = decide(pod);
    expect(resourcesOf(after(pod, decision))).toEqual([
      resources('1', '2'),
      ORIGINAL,
      resources('1', '2'),
    ]);
    expect(decision).toMatchObject({
      changes: [
        { container: 'app', resource: 'requests', from: '500m', to: '250m' },
        { container: 'app', resource: 'limits', from: '2', to: '1' },
        { container: 'web', resource: 'requests', from: '2', to: '1' },
        { container: 'web', resource: 'limits', from: '4', to: '2' },
      ],
    });
  });
});

describe('a pod at its originals', () => {
  const reverted = (status: JsonObject = {}, overrides: Boosted = {}) =>
    boostedPod({ resources: ORIGINAL, conditions: [ready], ...overrides, status });

  it('loses the marker and the skip reason, and says how the boost ended', () => {
    const pod = reverted(
      {},
      {
        labels: { app: 'app', [BOOST_KEY]: 'boost' },
        metadata: {
          annotations: { team: 'a', [SKIPPED_KEY]: 'NoCpu', [BOOST_KEY]: JSON.stringify(RECORD) },
        },
      },
    );
    const decision = decide(pod);
    expect(decision).toMatchObject({ kind: 'Clear', reason: 'ConditionMet', changedByOther: [] });
    const { labels, annotations } = readPod(after(pod, decision));
    expect(labels).toEqual(new Map([['app', 'app']]));
    expect(annotations).toEqual(
      new Map([
        ['team', 'a'],
        [ENDED_KEY, 'ConditionMet'],
      ]),
    );
  });

  it('is done with, although its boost would go on', () => {
    expect(decide(boostedPod({ resources: ORIGINAL }))).toMatchObject({
      kind: 'Clear',
      reason: 'AlreadyOriginal',
    });
  });

  const condition = (type: string, reason?: string, message?: string) => ({
    conditions: [scheduled, ready, { type, status: 'True', reason, message }],
  });
  const allocated = (cpu: string) => ({
    containerStatuses: [{ name: 'app', allocatedResources: { cpu } }],
  });

  it.each<[string, JsonObject]>([
    ['has not seen the change', { observedGeneration: 2 }],
    ['has put it off', condition('PodResizePending', 'Deferred')],
    ['is at it', condition('PodResizeInProgress')],
    ['has failed and tries again', condition('PodResizeInProgress', 'Error')],
    ['has the old request allocated', allocated('500m')],
  ])('waits while the kubelet %s, and says so when that takes long', (_what, status) => {
    const pod = reverted(status);
    const until = SCHEDULED + 30 * SECOND;
    expect(decide(pod)).toEqual({ kind: 'Wait', for: 'Kubelet', until });
    const waiting = { waitingSince: SCHEDULED, now: until - 1 };
    expect(decide(pod, waiting)).toEqual({ kind: 'Wait', for: 'Kubelet', until });
    expect(decide(pod, { ...waiting, now: until })).toMatchObject({
      kind: 'Stuck',
      why: 'NotConfirmed',
    });
  });

  it.each<[string, JsonObject, Boosted]>([
    ['has confirmed', {}, {}],
    ['has confirmed a later change too', { observedGeneration: 4 }, {}],
    ['says it in other words', allocated('0.25'), {}],
    [
      'knows a condition that is over',
      { conditions: [scheduled, ready, { type: 'PodResizePending', status: 'False' }] },
      {},
    ],
    ['has not begun with the pod', { containerStatuses: [], observedGeneration: 1 }, {}],
    ['is not there yet', { observedGeneration: 1 }, { spec: { nodeName: '' } }],
    [
      'has nothing left to do for a finished pod',
      { phase: 'Succeeded', observedGeneration: 1 },
      {},
    ],
  ])('is cleared when the kubelet %s', (_what, status, overrides) => {
    expect(decide(reverted(status, overrides)).kind).toBe('Clear');
  });

  it('is given 5 s by a kubelet that does not tell which generation it has seen', () => {
    const pod = reverted({ observedGeneration: undefined });
    const until = SCHEDULED + 5 * SECOND;
    expect(decide(pod)).toEqual({ kind: 'Wait', for: 'Kubelet', until });
    expect(decide(pod, { waitingSince: SCHEDULED, now: until }).kind).toBe('Clear');
  });

  it('is stuck when the kubelet refuses for good, with its message', () => {
    const message = 'Node didn’t have enough resource: cpu';
    expect(decide(reverted(condition('PodResizePending', 'Infeasible', message)))).toEqual({
      kind: 'Stuck',
      why: 'Infeasible',
      message: expect.stringContaining(message),
    });
  });
});

describe('a LimitRange made after the pod', () => {
  const defaults = (type: string, item: JsonObject) => [{ spec: { limits: [{ type, ...item }] } }];
  const withoutLimit = boostedPod({
    conditions: [ready],
    record: { ...RECORD, initCPULimits: undefined, boostedCPULimits: undefined },
    resources: { requests: { cpu: '500m' } },
  });

  it.each<[string, readonly unknown[], boolean]>([
    ['a default CPU limit', defaults('Container', { default: { cpu: '1' } }), true],
    [
      'a default memory request',
      defaults('Container', { defaultRequest: { memory: '1Mi' } }),
      true,
    ],
    [
      'a default of something that no resize touches',
      defaults('Container', { default: { 'ephemeral-storage': '1Gi' } }),
      false,
    ],
    ['a default CPU request', defaults('Container', { defaultRequest: { cpu: '1' } }), false],
    ['a maximum', defaults('Container', { max: { cpu: '8' } }), false],
    ['what is none', [null, {}, 'x', { spec: { limits: {} } }], false],
  ])('with %s: the revert waits for a person %s', (_what, limitRanges, isStuck) => {
    expect(decide(withoutLimit, { limitRanges })).toMatchObject(
      isStuck ? { kind: 'Stuck', why: 'LimitRangeWouldChangePod' } : { kind: 'Resize' },
    );
    const anyway = { limitRanges, settings: { limitRangeDefaults: 'Accept' as const } };
    expect(decide(withoutLimit, anyway).kind).toBe('Resize');
  });
});

describe('the patches', () => {
  const pod = boostedPod({ conditions: [ready] });
  const resize = decide(pod);
  const reverted = boostedPod({ conditions: [ready], resources: ORIGINAL });
  const clear = decide(reverted);

  it.each<[string, JsonObject]>([
    [
      'is another one of the same name',
      boostedPod({ conditions: [ready], metadata: { uid: 'new' } }),
    ],
    [
      'was boosted again',
      boostedPod({ conditions: [ready], record: { ...RECORD, generation: 2 } }),
    ],
    [
      'has other CPU by now',
      boostedPod({ conditions: [ready], resources: resources('600m', '2') }),
    ],
    [
      'has another container in that place',
      boostedPod({
        conditions: [ready],
        containers: [aContainer({ name: 'web', resources: BOOSTED })],
      }),
    ],
  ])('do not apply to a pod that %s', (_what, other) => {
    expect(() => after(other, resize)).toThrow();
  });

  it('do not clear a record that was written since', () => {
    const again = boostedPod({ resources: ORIGINAL, record: { ...RECORD, generation: 2 } });
    expect(() => after(again, clear)).toThrow();
    expect(hasMarker(after(reverted, clear))).toBe(false);
  });

  it.each(['Active', 'Pending'])(
    'do not clear the %s record of a pod that was raised since, which leaves the record as it is',
    (state) => {
      const record = { ...RECORD, state };
      const before = boostedPod({ conditions: [ready], resources: ORIGINAL, record });
      const decision = decide(before);
      expect(decision.kind).toBe('Clear');
      const raised = boostedPod({ conditions: [ready], record });
      expect(() => after(raised, decision)).toThrow();
      const other = boostedPod({ conditions: [ready], resources: resources('250m', '2'), record });
      expect(() => after(other, decision)).toThrow();
      expect(hasMarker(after(before, decision))).toBe(false);
    },
  );

  it('clear a pod that has containers without CPU', () => {
    const containers = [
      aContainer({ resources: ORIGINAL }),
      aContainer({ name: 'none', resources: {} }),
    ];
    const pod = boostedPod({ conditions: [ready], containers });
    expect(hasMarker(after(pod, decide(pod)))).toBe(false);
  });

  it('compare the very text that the API server delivered', () => {
    const decimal = boostedPod({ conditions: [ready], resources: resources('0.5', '2') });
    const decision = decide(decimal);
    expect(decision).toMatchObject({
      patch: expect.arrayContaining([
        { op: 'test', path: '/spec/containers/0/resources/requests/cpu', value: '0.5' },
      ]),
    });
    expect(resourcesOf(after(decimal, decision))).toEqual([ORIGINAL]);
  });
});

describe('what is no pod', () => {
  it.each([undefined, null, 7, 'pod', [], {}, { metadata: { annotations: { [BOOST_KEY]: 1 } } }])(
    'is left alone: %j',
    (pod) => {
      expect(decide(pod)).toEqual({ kind: 'Nothing' });
    },
  );
});
