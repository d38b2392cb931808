/** One line about work that goes on: rewritten in place on a terminal, now and then a line elsewhere. */

export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** ECMA-48: back to the first column, and the line erased. */
const ERASE = '\r\u001b[2K';

/** A log is read later: a line each time is enough to see that something goes on. */
const LOG_EVERY_MS = 5_000;

/** Where a terminal does not tell its width, or says 0. */
const DEFAULT_COLUMNS = 80;

export class ProgressLine {
  readonly #output: Output;
  #shown = '';
  #shownAt = -Infinity;

  constructor(output: Output) {
    this.#output = output;
  }

  /**
   * Shows how far the work is. Elsewhere than on a terminal, only where that is news.
   *
   * @param now monotonic milliseconds
   */
  show(text: string, now: number): void {
    if (text === this.#shown) return;
    if (this.#output.isTTY === true) {
      const { columns = 0 } = this.#output;
      this.#output.write(ERASE + text.slice(0, (columns > 1 ? columns : DEFAULT_COLUMNS) - 1));
    } else {
      if (now - this.#shownAt < LOG_EVERY_MS) return;
      this.#output.write(`${text}\n`);
    }
    this.#shown = text;
    this.#shownAt = now;
  }

  /** A line that stays. */
  line(text: string): void {
    this.clear();
    this.#output.write(`${text}\n`);
  }

  clear(): void {
    if (this.#output.isTTY === true && this.#shown !== '') this.#output.write(ERASE);
    this.#shown = '';
  }
}
