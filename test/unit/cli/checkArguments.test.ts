/** The arguments of check. */
import { describe, expect, it } from '@jest/globals';
import { parseCheckArguments } from '../../../src/cli/checkCommand';

describe('the arguments', () => {
  it.each([
    [[], { kind: 'Check', timeoutMs: 60_000 }],
    [['--timeout=2m'], { kind: 'Check', timeoutMs: 120_000 }],
    [['--help'], { kind: 'Help' }],
  ])('%j', (args, expected) => {
    expect(parseCheckArguments(args)).toEqual(expected);
  });

  it.each([
    [['--timeout', 'soon'], '--timeout soon: must be a time such as 90s, 2m or 1h30m'],
    [['--fix'], "Unknown option '--fix'"],
    [['now'], "Unexpected argument 'now'"],
  ])('%j is wrong, with the reason', (args, problem) => {
    expect(parseCheckArguments(args)).toMatchObject({
      kind: 'Wrong',
      problem: expect.stringContaining(problem),
    });
  });
});
