/** Which containers a policy is for: exact names, and patterns in RE2 syntax. */
import { describe, expect, it } from '@jest/globals';
import {
  compileContainerMatcher,
  matchesContainer,
} from '../../../src/boost-engine/containerMatcher';
import { IssueList } from '../../../src/boost-engine/issue';

function compile(policy: unknown) {
  const issues = new IssueList();
  const matcher = compileContainerMatcher(policy, 'policy', issues);
  return { matcher, issues: issues.all };
}

function matches(policy: unknown, name: string): boolean {
  const { matcher } = compile(policy);
  if (matcher === undefined) throw new Error('the policy was refused');
  return matchesContainer(matcher, name);
}

const exact = (value: unknown) => ({ matchContainers: { type: 'ExactName', value } });
const regex = (value: unknown) => ({ matchContainers: { type: 'RegexName', value } });

describe('an exact name', () => {
  it.each([
    exact('app'),
    { containerName: 'app' },
    { containerName: 'app', matchContainers: null },
  ])('of %j matches that container alone', (policy) => {
    expect(matches(policy, 'app')).toBe(true);
    expect(matches(policy, 'app2')).toBe(false);
    expect(matches(policy, 'App')).toBe(false);
    expect(matches(policy, '')).toBe(false);
  });

  it('has no special characters', () => {
    expect(matches(exact('.*'), 'app')).toBe(false);
  });
});

describe('a pattern', () => {
  it.each<[string, string, boolean]>([
    ['app', 'my-app-2', true],
    ['^app', 'app2', true],
    ['^app$', 'app2', false],
    ['.*', '', true],
    ['^(web|api)-[0-9]+$', 'api-12', true],
    ['^(web|api)-[0-9]+$', 'api-', false],
    ['(?i)^APP$', 'app', true],
    ['(?P<name>a)pp', 'app', true],
    ['[[:alpha:]]+', '123', false],
    ['\\Qa.b\\E', 'a.b', true],
    ['\\Qa.b\\E', 'aXb', false],
    ['\\pL', 'app', true],
    ['p\\z', 'app', true],
  ])('%s on %j is found as in Go: %s', (pattern, name, expected) => {
    expect(matches(regex(pattern), name)).toBe(expected);
  });

  it.each([
    '(',
    '[',
    'a**',
    '*a',
    '(?=a)',
    '(?!a)',
    '(?<=a)b',
    '(a)\\1',
    'a++',
    'a{1001}',
    '\\Z',
    '(?x)a',
    '(a{1000}){1000}',
  ])('%s is refused, as in Go', (pattern) => {
    expect(compile(regex(pattern))).toEqual({
      matcher: undefined,
      issues: [
        {
          path: 'policy.matchContainers.value',
          message: expect.stringMatching(/^must be a regular expression in RE2 syntax: ./),
        },
      ],
    });
  });

  it.each(['(a+)+$', '(a|aa)+$', '(.*)*(.*)*(.*)*b', '^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y'])(
    '%s, which would hang a backtracking engine, gives an answer',
    (pattern) => {
      expect(typeof matches(regex(pattern), `${'a'.repeat(62)}!`)).toBe('boolean');
      expect(typeof matches(regex(pattern), 'x'.repeat(63))).toBe('boolean');
    },
  );

  it.each([
    '(.?){1000}',
    '(.?){1000}'.repeat(25),
    '(?:a?){1000}'.repeat(21),
    '\\PL{1000}'.repeat(28),
  ])('%s, small to write and large once compiled, is refused', (pattern) => {
    const { matcher, issues } = compile(regex(pattern));
    expect(matcher).toBeUndefined();
    expect(issues).toEqual([
      {
        path: 'policy.matchContainers.value',
        message: expect.stringContaining('simpler'),
      },
    ]);
  });

  it('may have 256 characters', () => {
    expect(compile(regex('a'.repeat(256))).issues).toEqual([]);
    expect(compile(regex('a'.repeat(257))).issues).toHaveLength(1);
  });
});

describe('compileContainerMatcher', () => {
  it.each<[unknown, string, string]>([
    [{}, 'policy', 'exactly one'],
    [null, 'policy', 'exactly one'],
    ['app', 'policy', 'exactly one'],
    [{ containerName: '' }, 'policy', 'exactly one'],
    [{ containerName: 'app', ...exact('app') }, 'policy', 'exactly one'],
    [{ containerName: 7 }, 'policy.containerName', 'name of a container'],
    [{ matchContainers: 'app' }, 'policy.matchContainers.type', 'ExactName or RegexName'],
    [{ matchContainers: { value: 'a' } }, 'policy.matchContainers.type', 'ExactName or RegexName'],
    [
      { matchContainers: { type: 'Glob', value: 'a' } },
      'policy.matchContainers.type',
      'ExactName or RegexName',
    ],
    [exact(''), 'policy.matchContainers.value', 'name of a container'],
    [exact(undefined), 'policy.matchContainers.value', 'name of a container'],
    [exact(['a']), 'policy.matchContainers.value', 'name of a container'],
    [regex(''), 'policy.matchContainers.value', 'regular expression'],
    [regex(null), 'policy.matchContainers.value', 'regular expression'],
    [regex('a'.repeat(10_000)), 'policy.matchContainers.value', '256'],
  ])('says of %j what is allowed at %s', (policy, path, message) => {
    expect(compile(policy)).toEqual({
      matcher: undefined,
      issues: [{ path, message: expect.stringContaining(message) }],
    });
  });
});
