/** The status of a boost: totals that never go down, and a condition that keeps its time. */
import { describe, expect, it } from '@jest/globals';
import { BOOST_KEY, boostStatus, compileBoost, isRevertible } from '../../../src/boost-engine';
import type { BoostStatusInput, BoostTally } from '../../../src/boost-engine';
import {
  aBoost,
  aPod,
  percentageIncrease,
  untilSeconds,
  UNTIL_READY,
} from '../../support/builders';

const NOW = Date.parse('2026-06-01T12:00:00.789Z');
const valid = compileBoost(aBoost({ metadata: { generation: 4 } }));
const invalid = compileBoost(aBoost({ containerPolicies: [], durationPolicy: {} }));

/** A boosted pod whose record names so many containers. */
function boosted(uid: string, containers = 1, state = 'Active') {
  const names = Array.from({ length: containers }, (_, index) => [`c${index}`, '1'] as const);
  const record = { state, initCPURequests: Object.fromEntries(names) };
  return aPod({ metadata: { uid }, annotations: { [BOOST_KEY]: JSON.stringify(record) } });
}

function status(input: Partial<BoostStatusInput>) {
  return boostStatus({
    boost: valid,
    pods: [],
    stuckPods: 0,
    previous: undefined,
    tally: undefined,
    now: NOW,
    ...input,
  });
}

const counts = (input: Partial<BoostStatusInput>) => {
  const { activeContainerBoosts, totalContainerBoosts, boostedPods, revertedPods } =
    status(input).status;
  return [activeContainerBoosts, totalContainerBoosts, boostedPods, revertedPods];
};

describe('the counts', () => {
  it.each<[string, readonly unknown[], readonly number[]]>([
    ['no pods', [], [0, 0, 0, 0]],
    ['two pods with three containers', [boosted('a'), boosted('b', 2)], [3, 3, 2, 0]],
    ['one pod twice', [boosted('a', 2), boosted('a', 2)], [2, 2, 1, 0]],
    ['a pod without a record', [aPod({ metadata: { uid: 'a' } })], [0, 0, 0, 0]],
    ['a pod without a uid', [aPod({ annotations: { [BOOST_KEY]: '{}' } })], [0, 0, 0, 0]],
    [
      'a pod with an unreadable record',
      [aPod({ metadata: { uid: 'a' }, annotations: { [BOOST_KEY]: 'junk' } })],
      [0, 0, 1, 0],
    ],
    [
      'a pod whose boost was taken back until it has a node',
      [boosted('a', 1, 'Pending')],
      [0, 0, 0, 0],
    ],
    ['no pods at all', [null, 7, 'pod', []], [0, 0, 0, 0]],
  ])('of %s', (_what, pods, expected) => {
    expect(counts({ pods })).toEqual(expected);
  });

  it('go on while pods come and go', () => {
    let tally: BoostTally | undefined;
    const rounds: [readonly unknown[], readonly number[]][] = [
      [[boosted('a', 2)], [2, 2, 1, 0]],
      [
        [boosted('a', 2), boosted('b')],
        [3, 3, 2, 0],
      ],
      [[boosted('b')], [1, 3, 2, 1]],
      [
        [boosted('b'), boosted('c', 3)],
        [4, 6, 3, 1],
      ],
      [[], [0, 6, 3, 3]],
    ];
    for (const [pods, expected] of rounds) {
      expect(counts({ pods, tally })).toEqual(expected);
      tally = status({ pods, tally }).tally;
    }
  });

  const stored = {
    activeContainerBoosts: 2,
    totalContainerBoosts: 10,
    boostedPods: 8,
    revertedPods: 6,
  };

  it.each<[string, unknown, readonly unknown[], readonly number[]]>([
    ['the same pods', stored, [boosted('a'), boosted('b')], [2, 10, 8, 6]],
    ['fewer pods', stored, [boosted('a')], [1, 10, 8, 7]],
    ['no pods', stored, [], [0, 10, 8, 8]],
    ['more pods', stored, [boosted('a'), boosted('b'), boosted('c', 2)], [4, 12, 9, 6]],
    [
      "upstream's status",
      { activeContainerBoosts: 1, totalContainerBoosts: 5 },
      [boosted('a')],
      [1, 5, 1, 0],
    ],
    ['a status that is none', 'junk', [boosted('a')], [1, 1, 1, 0]],
    [
      'counts that are none',
      { totalContainerBoosts: -4, boostedPods: 'x' },
      [boosted('a')],
      [1, 1, 1, 0],
    ],
  ])('start for a new writer from the stored status: %s', (_what, previous, pods, expected) => {
    expect(counts({ previous, pods })).toEqual(expected);
  });

  it('do not fall behind the stored status, which another writer may have raised', () => {
    const tally: BoostTally = { totalContainers: 3, totalPods: 2, counted: new Set(['a']) };
    const [, containers = 0, pods = 0] = counts({ previous: stored, pods: [boosted('a')], tally });
    expect(containers).toBeGreaterThanOrEqual(10);
    expect(pods).toBeGreaterThanOrEqual(8);
  });

  it('carry the stuck pods through', () => {
    expect(status({ stuckPods: 3 }).status.stuckPods).toBe(3);
  });
});

describe('the condition Active', () => {
  const condition = (input: Partial<BoostStatusInput>) => status(input).status.conditions[0];
  const before = (fields: object) => ({
    conditions: [
      { type: 'Other', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' },
      { type: 'Active', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z', ...fields },
    ],
  });

  it('is True for a valid boost, since now', () => {
    expect(condition({})).toEqual({
      type: 'Active',
      status: 'True',
      reason: 'Ready',
      message: 'Can boost new containers',
      observedGeneration: 4,
      lastTransitionTime: '2026-06-01T12:00:00Z',
    });
  });

  it('is False for an invalid one, with everything that is wrong', () => {
    expect(condition({ boost: invalid })).toMatchObject({
      status: 'False',
      reason: 'Invalid',
      message: expect.stringMatching(/containerPolicies needs .*; spec\.durationPolicy needs /),
    });
  });

  it.each<[string, unknown, string]>([
    ['it is the same', before({}), '2026-01-01T00:00:00Z'],
    ['only the message differs', before({ reason: 'X', message: 'Y' }), '2026-01-01T00:00:00Z'],
    ['it was False', before({ status: 'False' }), '2026-06-01T12:00:00Z'],
    ['it had no time', before({ lastTransitionTime: null }), '2026-06-01T12:00:00Z'],
    ['there were no conditions', { conditions: 'none' }, '2026-06-01T12:00:00Z'],
  ])('keeps or sets its time when %s', (_what, previous, expected) => {
    expect(condition({ previous })?.lastTransitionTime).toBe(expected);
  });

  it('has no message longer than the API allows', () => {
    const policies = Array.from({ length: 2_000 }, () => ({}));
    const boost = compileBoost(aBoost({ containerPolicies: policies }));
    expect(condition({ boost })?.message.length).toBeLessThanOrEqual(32_768);
  });
});

describe('the conditions about the surroundings', () => {
  const conditions = (input: Partial<BoostStatusInput>) =>
    status(input).status.conditions.map(({ type, status: is, reason }) => [type, is, reason]);

  it.each<[NonNullable<BoostStatusInput['surroundings']>, readonly (readonly string[])[]]>([
    [{}, [['Active', 'True', 'Ready']]],
    [{ webhook: 'Serving' }, [['Active', 'True', 'Ready']]],
    [{ webhook: 'Stopped' }, [['Active', 'False', 'Stopped']]],
    [
      { revertible: 'CanRevert', conflictingWebhooks: [] },
      [
        ['Active', 'True', 'Ready'],
        ['Revertible', 'True', 'CanRevert'],
        ['ConflictingWebhook', 'False', 'NoConflict'],
      ],
    ],
    [
      { revertible: 'ResizeNotServed', conflictingWebhooks: ['upstream'] },
      [
        ['Active', 'True', 'Ready'],
        ['Revertible', 'False', 'ResizeNotServed'],
        ['ConflictingWebhook', 'True', 'OtherConfiguration'],
      ],
    ],
  ])('for %j', (surroundings, expected) => {
    expect(conditions({ surroundings })).toEqual(expected);
  });

  it('say that a boost is invalid rather than stopped, since that has to be mended', () => {
    const surroundings = { webhook: 'Stopped' } as const;
    expect(conditions({ boost: invalid, surroundings })).toEqual([['Active', 'False', 'Invalid']]);
  });

  const stored = (type: string, fields: object = {}) => ({
    type,
    status: 'False',
    reason: 'Stored',
    message: 'as it was',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    ...fields,
  });

  it('stay as they are stored while nothing is known, and so do those of others', () => {
    const kept = [stored('Revertible'), stored('example.com/Theirs', { status: 'Unknown' })];
    const previous = { conditions: [...kept, stored('Nameless', { reason: '' }), 7] };
    expect(status({ previous }).status.conditions.slice(1)).toEqual(kept);
  });

  it('never become more than the API takes', () => {
    const many = Array.from({ length: 40 }, (_, index) => stored(`Type${index}`));
    expect(status({ previous: { conditions: many } }).status.conditions).toHaveLength(16);
  });

  it.each<[string, unknown, boolean]>([
    ['says False', [stored('Revertible')], false],
    ['says True', [stored('Revertible', { status: 'True' })], true],
    ['is not there', [stored('Active')], true],
    ['is none', 'junk', true],
  ])('let admission boost unless Revertible is False: it %s', (_what, given, expected) => {
    expect(isRevertible({ status: { conditions: given } })).toBe(expected);
  });
});

describe('the columns', () => {
  const fixedResources = (requests: string, limits?: string) => ({
    matchContainers: { type: 'ExactName', value: 'app' },
    fixedResources: { requests, ...(limits === undefined ? {} : { limits }) },
  });

  it.each([
    [[percentageIncrease('app', 100)], UNTIL_READY, '+100%', 'Ready'],
    [[fixedResources('2', '3')], untilSeconds(60), '2/3', '60s'],
    [[fixedResources('1500m')], { ...UNTIL_READY, ...untilSeconds(60) }, '1500m', 'Ready|60s'],
    [
      [1, 2, 3, 4].map((value) => percentageIncrease('app', value)),
      UNTIL_READY,
      '+1%,+2%,+3%,…',
      'Ready',
    ],
  ])('of %j are short', (containerPolicies, durationPolicy, policy, until) => {
    const boost = compileBoost(aBoost({ containerPolicies, durationPolicy }));
    expect(status({ boost }).status).toMatchObject({ policy, until });
  });

  it('are empty for an invalid boost', () => {
    expect(status({ boost: invalid }).status).toMatchObject({ policy: '', until: '' });
  });
});
