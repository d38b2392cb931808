/** The names under which objects are known and work on them is queued. */
import { readMetadata } from '../boost-engine';
import type { JsonObject } from '../kube';

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export interface ReconcileKey extends ObjectName {
  readonly kind: 'Pod' | 'Boost';
}

export function nameOf(object: JsonObject): ObjectName {
  const { namespace = '', name = '' } = readMetadata(object);
  return { namespace, name };
}

/** Neither namespaces nor names have a slash, so the text is unambiguous. */
export function formatName({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}

export function formatKey(key: ReconcileKey): string {
  return `${key.kind}/${formatName(key)}`;
}

export function parseKey(text: string): ReconcileKey | undefined {
  const [kind, namespace, name, ...rest] = text.split('/');
  if (kind !== 'Pod' && kind !== 'Boost') return undefined;
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  return { kind, namespace, name };
}
