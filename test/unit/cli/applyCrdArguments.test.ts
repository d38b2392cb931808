/** The arguments of apply-crd. */
import { describe, expect, it } from '@jest/globals';
import { parseApplyCrdArguments } from '../../../src/cli/applyCrdCommand';

describe('the arguments', () => {
  it.each([
    [[], { kind: 'Apply', timeoutMs: 120_000, unknownFields: 'Keep' }],
    [['--timeout=10s'], { kind: 'Apply', timeoutMs: 10_000, unknownFields: 'Keep' }],
    [['--drop-unknown-fields'], { kind: 'Apply', timeoutMs: 120_000, unknownFields: 'Drop' }],
    [['-h'], { kind: 'Help' }],
  ])('%j', (args, expected) => {
    expect(parseApplyCrdArguments(args)).toEqual(expected);
  });

  it.each([
    [['--timeout', '0s'], '--timeout 0s: must be a time such as 90s, 2m or 1h30m'],
    [['--force'], "Unknown option '--force'"],
    [['now'], "Unexpected argument 'now'"],
  ])('%j is wrong, with the reason', (args, problem) => {
    expect(parseApplyCrdArguments(args)).toMatchObject({
      kind: 'Wrong',
      problem: expect.stringContaining(problem),
    });
  });
});
