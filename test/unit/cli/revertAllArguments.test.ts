/** The arguments of revert-all, and what it shows while it works. */
import { describe, expect, it } from '@jest/globals';
import { parseDuration } from '../../../src/cli/duration';
import { ProgressLine } from '../../../src/cli/progressLine';
import { parseRevertAllArguments } from '../../../src/cli/revertAllCommand';

describe('a duration', () => {
  it.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1h1m1s', 3_661_000],
  ])('%s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '0s', '10', '10 m', '-1s', '1.5h', '1m1h', 'soon', '9999999999s'])(
    '%j is none',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

describe('the arguments', () => {
  it.each([
    [[], { kind: 'Revert', boosting: 'Stop', timeoutMs: 600_000 }],
    [
      ['--keep-boosting', '--timeout', '30s'],
      { kind: 'Revert', boosting: 'Keep', timeoutMs: 30_000 },
    ],
    [['--timeout=1h'], { kind: 'Revert', boosting: 'Stop', timeoutMs: 3_600_000 }],
    [['--undo'], { kind: 'Undo' }],
    [['-h'], { kind: 'Help' }],
  ])('%j', (args, expected) => {
    expect(parseRevertAllArguments(args)).toEqual(expected);
  });

  it.each([
    [['--timeout', 'soon'], '--timeout soon: must be a time such as 90s, 10m or 1h30m'],
    [['--undo', '--timeout', '1s'], '--undo stands alone'],
    [['--now'], expect.stringContaining("'--now'")],
    [['pod/web'], expect.stringContaining("'pod/web'")],
    [['--timeout'], expect.stringContaining('--timeout')],
  ])('%j are wrong, and it says why', (args, problem) => {
    expect(parseRevertAllArguments(args)).toEqual({ kind: 'Wrong', problem });
  });
});

describe('the progress', () => {
  function output(fields: { readonly isTTY?: boolean; readonly columns?: number } = {}) {
    const written: string[] = [];
    return { written, ...fields, write: (text: string) => written.push(text) };
  }

  it('is one line that is written over on a terminal, never longer than that', () => {
    const terminal = output({ isTTY: true, columns: 10 });
    const line = new ProgressLine(terminal);
    line.show('one', 0);
    line.show('one', 1);
    line.show('0123456789 and more', 2);
    line.clear();
    const erase = '\r\u001b[2K';
    expect(terminal.written).toEqual([`${erase}one`, `${erase}012345678`, erase]);
  });

  it('has its room on a terminal that says that it has none', () => {
    const terminal = output({ isTTY: true, columns: 0 });
    new ProgressLine(terminal).show('one', 0);
    expect(terminal.written).toEqual(['\r\u001b[2Kone']);
  });

  it('is a line now and then elsewhere, and only where there is news', () => {
    const log = output();
    const line = new ProgressLine(log);
    line.show('one', 0);
    line.show('two', 4_999);
    line.show('three', 5_000);
    line.show('three', 60_000);
    line.clear();
    expect(log.written).toEqual(['one\n', 'three\n']);
  });
});
