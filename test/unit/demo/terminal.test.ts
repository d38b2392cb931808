/** What the demo writes: columns that line up, and colours only where they are wanted. */
import { describe, expect, it } from '@jest/globals';
import { createTerminal } from '../../../demo/terminal';
import type { Terminal } from '../../../demo/terminal';

function written(
  write: (terminal: Terminal) => void,
  { isTTY = false, env = {} }: { readonly isTTY?: boolean; readonly env?: NodeJS.ProcessEnv } = {},
): string {
  let all = '';
  const output = {
    isTTY,
    write: (text: string) => {
      all += text;
    },
  };
  write(createTerminal(output, env));
  return all;
}

const raisedLine = (terminal: Terminal): void => {
  terminal.line('more', 'raised');
};

describe('colours', () => {
  it('are there on a terminal', () => {
    expect(written(raisedLine, { isTTY: true })).toBe('\u001b[33mmore\u001b[0m\n');
  });

  it('are not there in a pipe', () => {
    expect(written(raisedLine)).toBe('more\n');
  });

  it('are not there where NO_COLOR asks for none', () => {
    expect(written(raisedLine, { isTTY: true, env: { NO_COLOR: '1' } })).toBe('more\n');
  });

  it('are there where NO_COLOR is empty, as its rules say', () => {
    expect(written(raisedLine, { isTTY: true, env: { NO_COLOR: '' } })).toContain('\u001b[33m');
  });

  it('do not count for the width of a column', () => {
    const row = (terminal: Terminal): void => {
      terminal.row([6], [{ text: 'pod', tone: 'good' }, { text: 'CPU' }]);
    };
    expect(written(row, { isTTY: true })).toBe('\u001b[32mpod   \u001b[0m  CPU\n');
  });
});

describe('columns', () => {
  it('are as wide as the longest cell of a table, without spaces at the end of a line', () => {
    const table = (terminal: Terminal): void => {
      terminal.table(
        ['POD', 'CPU', 'WHY'],
        [
          [{ text: 'checkout' }, { text: '1' }, { text: 'ConditionMet' }],
          [{ text: 'a' }, { text: '250m/1' }, { text: '' }],
        ],
      );
    };
    expect(written(table)).toBe(
      ['POD       CPU     WHY', 'checkout  1       ConditionMet', 'a         250m/1', ''].join(
        '\n',
      ),
    );
  });

  it('move to the right for a cell that is too long, and lose nothing', () => {
    const row = (terminal: Terminal): void => {
      terminal.row([3, 3], [{ text: 'a-long-name' }, { text: 'b' }, { text: 'c' }]);
    };
    expect(written(row)).toBe('a-long-name  b    c\n');
  });
});
