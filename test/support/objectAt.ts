/** Reads objects out of JSON whose form a test knows. */
import type { JsonObject } from '../../src/kube';

/** The object under the key; an empty one where there is none. */
export function objectAt(object: JsonObject, key: string): JsonObject {
  return objectOf(object[key]);
}

/** The objects of the list under the key; none where there is no list. */
export function listAt(object: JsonObject, key: string): JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** The texts of the list under the key; none where there is no list. */
export function textsAt(object: JsonObject, key: string): string[] {
  const value = object[key];
  return Array.isArray(value) ? value.map(String) : [];
}

/** Itself where it is an object; an empty one where it is not. */
export function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value))
    : {};
}

/** The text under the key; '' where there is none. */
export function textAt(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}
