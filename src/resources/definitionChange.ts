/** What would be lost if our CustomResourceDefinition took the place of the one that is stored. */
import { fieldsOf, isObject, itemsOf } from '../boost-engine';
import type { Schema } from './schemaType';
import { STARTUP_CPU_BOOST, startupCpuBoostSchema } from './startupCpuBoost.schema';

/** What the API server keeps whatever the schema says, and what is ours to write. */
const NOT_OF_USERS = ['apiVersion', 'kind', 'metadata', 'status'];

/** Versions that objects may be stored in and that ours cannot read. */
export function missingVersions(stored: unknown): readonly string[] {
  const status = fieldsOf(fieldsOf(stored).get('status'));
  return itemsOf(status.get('storedVersions'))
    .map(String)
    .filter((version) => version !== STARTUP_CPU_BOOST.version);
}

/**
 * Fields of a boost that the API server would drop at its next write, since our schema does not have
 * them: `spec.resourcePolicy.containerPolicies[0].maximum`. Each is named once, by its uppermost part.
 */
export function lostFields(boost: unknown): readonly string[] {
  return Array.from(fieldsOf(boost)).flatMap(([key, value]) =>
    NOT_OF_USERS.includes(key) ? [] : lostIn(startupCpuBoostSchema, key, value, key),
  );
}

function lostIn(schema: Schema, key: string, value: unknown, path: string): readonly string[] {
  const known = fieldsOf(schema.properties).has(key);
  const schemaOfKey = known ? schema.properties?.[key] : schema.additionalProperties;
  if (schemaOfKey !== undefined) return lostBelow(schemaOfKey, value, path);
  return schema['x-kubernetes-preserve-unknown-fields'] === true ? [] : [path];
}

function lostBelow(schema: Schema, value: unknown, path: string): readonly string[] {
  if (isObject(value)) {
    return Array.from(fieldsOf(value)).flatMap(([key, below]) =>
      lostIn(schema, key, below, `${path}.${key}`),
    );
  }
  const { items } = schema;
  if (items === undefined) return [];
  return itemsOf(value).flatMap((item, index) => lostBelow(items, item, `${path}[${index}]`));
}
