/** Where a command that runs to its end writes, and how it writes what others have said. */
import type { Output } from './progressLine';

export interface Terminal {
  /** For what is found in the end. */
  readonly out: Output;
  /** For what goes on, and for errors. */
  readonly err: Output;
}

/**
 * The text of an API server or a webhook behind it can be as long as it likes; why a webhook could not be
 * called stands at its end, after 300 characters of names and addresses.
 */
const MAX_REASON_LENGTH = 600;

/** One line, and nothing that a terminal would obey. */
export function printable(text: string): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ');
  return line.length > MAX_REASON_LENGTH ? `${line.slice(0, MAX_REASON_LENGTH)}…` : line;
}
