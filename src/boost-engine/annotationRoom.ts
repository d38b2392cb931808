/** Whether annotations fit on a pod: the API server refuses a pod that carries too many of them. */

/**
 * TotalAnnotationSizeLimitB (256 KiB) in k8s.io/apimachinery/pkg/api/validation/objectmeta.go, less
 * 1 KiB for those who write annotations after us.
 */
const MAX_BYTES = 255 * 1024;

/** Whether the annotations fit together with `added`, which replaces entries of the same key. */
export function hasRoomFor(
  annotations: ReadonlyMap<string, string> | undefined,
  added: ReadonlyMap<string, string>,
): boolean {
  let bytes = 0;
  for (const [key, value] of new Map([...(annotations ?? []), ...added])) {
    bytes += utf8Length(key) + utf8Length(value);
  }
  return bytes <= MAX_BYTES;
}

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
