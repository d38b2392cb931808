/** Reads values out of JSON that nobody has checked; a value of the wrong kind is as good as absent. */

export type JsonFields = ReadonlyMap<string, unknown>;

const NO_FIELDS: JsonFields = new Map();

/**
 * The own fields of a JSON object, as a Map: a key such as `constructor` or `__proto__` then finds
 * only what was really written there.
 */
export function fieldsOf(value: unknown): JsonFields {
  return isObject(value) ? new Map<string, unknown>(Object.entries(value)) : NO_FIELDS;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function integerOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
}

/** The string values of a JSON object such as labels; undefined where there is no object at all. */
export function textsOf(value: unknown): ReadonlyMap<string, string> | undefined {
  if (!isObject(value)) return undefined;
  const texts = new Map<string, string>();
  for (const [key, text] of Object.entries(value)) {
    if (typeof text === 'string') texts.set(key, text);
  }
  return texts;
}

/** Epoch milliseconds of a Kubernetes timestamp (RFC 3339); undefined where it is none. */
export function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
