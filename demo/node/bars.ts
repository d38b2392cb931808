/** The CPU quota over time as bars of text: a column is a span of time, its height the quota. */
import type { Cell } from '../terminal';
import { quotaAt, secondsText } from './start';
import type { Start } from './start';

/** With the labels on the left it stays below 80. */
const COLUMNS = 68;
const ROWS = 4;
/** Eighths of a cell, see the Unicode block elements. */
const BLOCKS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LABEL_WIDTH = 7;

export interface Scale {
  /** The end of the axis, in milliseconds; the same for all that are compared. */
  readonly until: number;
  /** The quota of a full column. */
  readonly highest: number;
}

/** Lines of cells, the highest first; the last one is the axis with the moment of Ready. */
export function barsOf(start: Start, { until, highest }: Scale): readonly (readonly Cell[])[] {
  const span = spanOf(until);
  const columns = Array.from({ length: Math.ceil(until / span) }, (_, index) =>
    quotaAt(start, (index + 0.5) * span),
  );
  const rows = Array.from({ length: ROWS }, (_, row) => rowOf(columns, ROWS - 1 - row, highest));
  const readyColumn = Math.floor(start.readyAt / span);
  const axis = columns.map((_, index) => (index === readyColumn ? '┴' : '─')).join('');
  return [
    ...rows,
    [{ text: ''.padStart(LABEL_WIDTH) }, { text: `└${axis}`, tone: 'faint' }],
    [
      { text: ''.padStart(LABEL_WIDTH) },
      { text: readyLabel(readyColumn + 1, start.readyAt), tone: 'good' },
    ],
  ];
}

/** A sentence for the reader of the bars. */
export function legendOf({ until }: Scale): string {
  const seconds = spanOf(until) / 1_000;
  return `one column is ${seconds === 1 ? 'a second' : `${seconds} seconds`}`;
}

function spanOf(until: number): number {
  return Math.max(1, Math.ceil(until / COLUMNS / 1_000)) * 1_000;
}

function rowOf(
  columns: readonly (number | undefined)[],
  row: number,
  highest: number,
): readonly Cell[] {
  const top = `${Math.round((highest * (row + 1)) / ROWS)}m`;
  const cells = columns.map((quota) => {
    const eighths = Math.round((((quota ?? 0) * ROWS) / highest - row) * 8);
    return BLOCKS[Math.min(8, Math.max(0, eighths))] ?? ' ';
  });
  return [
    { text: top.padStart(LABEL_WIDTH), tone: 'faint' },
    { text: `│${cells.join('')}`, tone: row === 0 ? 'lowered' : 'raised' },
  ];
}

/** Left of its moment where it would not fit right of it. */
function readyLabel(column: number, readyAt: number): string {
  const text = `Ready after ${secondsText(readyAt)}`;
  return column + text.length + 2 <= COLUMNS
    ? `${' '.repeat(column)}▲ ${text}`
    : `${`${text} `.padStart(column)}▲`;
}
