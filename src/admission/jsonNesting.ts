/** How deep a JSON text nests, told before it is parsed. */

/**
 * Whether brackets nest deeper than `limit`; looks at the text only, which may be no JSON at all.
 *
 * Millions of brackets are parsed for a second or more, in which nothing else is answered
 * (`'['.repeat(7 << 20)`: 1.3 s on Node 20).
 */
export function nestsDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  let isInText = false;
  for (let position = 0; position < text.length; position++) {
    const code = text.charCodeAt(position);
    if (isInText) {
      if (code === BACKSLASH) position++;
      else if (code === QUOTE) isInText = false;
    } else if (code === QUOTE) {
      isInText = true;
    } else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
      depth++;
      if (depth > limit) return true;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
      depth--;
    }
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
