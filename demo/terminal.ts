/** Text for a person: colours where they are wanted, columns that line up. */

export type Tone = 'plain' | 'faint' | 'raised' | 'lowered' | 'good' | 'bad' | 'title';

/** SGR codes, see ECMA-48. */
const CODES: Readonly<Record<Tone, string>> = {
  plain: '',
  faint: '2',
  raised: '33',
  lowered: '36',
  good: '32',
  bad: '31',
  title: '1',
};

export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
}

export interface Terminal {
  /** One line of text. */
  line(text?: string, tone?: Tone): void;
  /** One line of cells; a cell that is too long pushes the rest to the right. */
  row(widths: readonly number[], cells: readonly Cell[]): void;
  /** Several rows, as wide as their cells are. */
  table(head: readonly string[], rows: readonly (readonly Cell[])[]): void;
}

export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Colours only on a terminal, and never against https://no-color.org. */
export function createTerminal(output: Output, env: NodeJS.ProcessEnv): Terminal {
  const hasColours = output.isTTY === true && (env.NO_COLOR ?? '') === '';
  const paint = (text: string, tone: Tone = 'plain'): string =>
    hasColours && CODES[tone] !== '' ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text;

  const row = (widths: readonly number[], cells: readonly Cell[]): void => {
    const texts = cells.map(({ text, tone }, index) => {
      const isLast = index === cells.length - 1;
      return paint(isLast ? text : text.padEnd(widths[index] ?? 0), tone);
    });
    output.write(`${texts.join('  ').trimEnd()}\n`);
  };

  return {
    line: (text = '', tone) => {
      output.write(`${paint(text, tone)}\n`);
    },
    row,
    table: (head, rows) => {
      const all = [head.map((text): Cell => ({ text, tone: 'title' })), ...rows];
      const widths = head.map((_, index) =>
        Math.max(...all.map((cells) => cells[index]?.text.length ?? 0)),
      );
      for (const cells of all) row(widths, cells);
    },
  };
}
