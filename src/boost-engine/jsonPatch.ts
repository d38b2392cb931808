/** JSON Patch (RFC 6902) as data: what the engine answers with and the callers send. */

export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export type JsonPatch = readonly JsonPatchOperation[];

/** Joins reference tokens to a JSON Pointer (RFC 6901), escaping `~` and `/`. */
export function jsonPointer(...tokens: readonly (string | number)[]): string {
  return tokens
    .map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}
