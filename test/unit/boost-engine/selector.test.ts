/** Label selectors: every operator against every kind of label, and what is no selector. */
import { describe, expect, it } from '@jest/globals';
import { IssueList } from '../../../src/boost-engine/issue';
import {
  canonicalSelector,
  compileSelector,
  matchesSelector,
} from '../../../src/boost-engine/selector';

function compile(value: unknown) {
  const issues = new IssueList();
  const selector = compileSelector(value, 'selector', issues);
  return { selector, issues: issues.all };
}

function matches(value: unknown, labels: ReadonlyMap<string, string> | undefined): boolean {
  const { selector, issues } = compile(value);
  expect(issues).toEqual([]);
  return matchesSelector(selector, labels);
}

/** Keys that every JavaScript object answers to, which no pod carries unless it is written there. */
const KEYS = ['tier', 'constructor', '__proto__', 'toString', 'hasOwnProperty'];

const expressions = {
  In: (key: string) => ({ key, operator: 'In', values: ['a', 'b'] }),
  NotIn: (key: string) => ({ key, operator: 'NotIn', values: ['a', 'b'] }),
  Exists: (key: string) => ({ key, operator: 'Exists' }),
  DoesNotExist: (key: string) => ({ key, operator: 'DoesNotExist' }),
};

describe.each(KEYS)('matchExpressions on the key %s', (key) => {
  it.each<[keyof typeof expressions, boolean, boolean, boolean]>([
    ['In', true, false, false],
    ['NotIn', false, true, true],
    ['Exists', true, true, false],
    ['DoesNotExist', false, false, true],
  ])('%s: value listed %s, other value %s, key absent %s', (operator, listed, other, absent) => {
    const selector = { matchExpressions: [expressions[operator](key)] };
    expect(matches(selector, new Map([[key, 'b']]))).toBe(listed);
    expect(matches(selector, new Map([[key, 'c']]))).toBe(other);
    expect(matches(selector, new Map([['another', 'b']]))).toBe(absent);
    expect(matches(selector, new Map())).toBe(absent);
    expect(matches(selector, undefined)).toBe(absent);
  });

  it('matchLabels: value the same, other value, key absent', () => {
    const selector: unknown = JSON.parse(`{"matchLabels":{"${key}":"b"}}`);
    expect(matches(selector, new Map([[key, 'b']]))).toBe(true);
    expect(matches(selector, new Map([[key, 'c']]))).toBe(false);
    expect(matches(selector, undefined)).toBe(false);
  });
});

describe('compileSelector', () => {
  it.each([
    {},
    { matchLabels: {} },
    { matchExpressions: [] },
    { matchLabels: null },
    null,
    undefined,
  ])('makes %j match every pod', (value) => {
    expect(matches(value, undefined)).toBe(true);
    expect(matches(value, new Map([['app', 'web']]))).toBe(true);
  });

  it('wants all of matchLabels and matchExpressions', () => {
    const selector = {
      matchLabels: { app: 'web', tier: 'a' },
      matchExpressions: [expressions.Exists('team')],
    };
    const labels = [
      ['app', 'web'],
      ['tier', 'a'],
      ['team', ''],
    ] as const;
    expect(matches(selector, new Map(labels))).toBe(true);
    for (const missing of labels) {
      const rest = labels.filter((label) => label !== missing);
      expect(matches(selector, new Map(rest))).toBe(false);
    }
  });

  it.each<[unknown, string, string]>([
    ['app=web', 'selector', 'object'],
    [['app'], 'selector', 'object'],
    [{ matchLabels: [] }, 'selector.matchLabels', 'strings'],
    [{ matchLabels: { app: 1 } }, 'selector.matchLabels', 'strings'],
    [{ matchExpressions: {} }, 'selector.matchExpressions', 'list'],
    [{ matchExpressions: 'app' }, 'selector.matchExpressions', 'list'],
    [{ matchExpressions: [null] }, 'selector.matchExpressions[0].key', 'label key'],
    [
      { matchExpressions: [{ key: '', operator: 'Exists' }] },
      'selector.matchExpressions[0].key',
      'label key',
    ],
    [{ matchExpressions: [{ key: 'a' }] }, 'selector.matchExpressions[0].operator', 'In, NotIn'],
    [
      { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] },
      'selector.matchExpressions[0].operator',
      'In, NotIn',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'toString' }] },
      'selector.matchExpressions[0].operator',
      'In, NotIn',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'In' }] },
      'selector.matchExpressions[0].values',
      'In',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] },
      'selector.matchExpressions[0].values',
      'NotIn',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'In', values: ['a', 1] }] },
      'selector.matchExpressions[0].values',
      'strings',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'NotIn', values: 'a' }] },
      'selector.matchExpressions[0].values',
      'NotIn',
    ],
    [
      {
        matchExpressions: [
          expressions.Exists('b'),
          { key: 'a', operator: 'Exists', values: ['x'] },
        ],
      },
      'selector.matchExpressions[1].values',
      'empty',
    ],
  ])('says of %j what is allowed at %s', (value, path, message) => {
    expect(compile(value).issues).toEqual([{ path, message: expect.stringContaining(message) }]);
  });
});

describe('canonicalSelector', () => {
  it('does not depend on the order of labels, expressions or values', () => {
    const one = compile({
      matchLabels: { a: '1', b: '2' },
      matchExpressions: [{ key: 'c', operator: 'In', values: ['x', 'y'] }],
    });
    const other = compile({
      matchExpressions: [
        { key: 'c', operator: 'In', values: ['y', 'x', 'x'] },
        { key: 'b', operator: 'In', values: ['2'] },
      ],
      matchLabels: { a: '1' },
    });
    expect(canonicalSelector(one.selector)).toBe(canonicalSelector(other.selector));
  });

  it('tells selectors apart that select different pods', () => {
    const texts = [
      {},
      { matchLabels: { a: '1' } },
      { matchLabels: { a: '2' } },
      { matchExpressions: [expressions.NotIn('a')] },
      { matchExpressions: [expressions.Exists('a')] },
      { matchExpressions: [expressions.DoesNotExist('a')] },
    ].map((value) => canonicalSelector(compile(value).selector));
    expect(new Set(texts).size).toBe(texts.length);
  });
});
