/** The names under which objects are known and work on them is queued. */
import { readMetadata } from '../boost-engine';
import type { JsonObject } from '../kube';

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export interface ReconcileKey extends ObjectName {
  /**
   * - `Pod`: what becomes of a boosted pod.
   * - `Raise`: whether a pod is raised in place.
   * - `Boost`: the status of a boost.
   * - `MissedPods`: whether pods have missed the boost.
   */
  readonly kind: (typeof KINDS)[number];
}

const KINDS = ['Pod', 'Raise', 'Boost', 'MissedPods'] as const;

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
  const [kindText, namespace, name, ...rest] = text.split('/');
  const kind = KINDS.find((known) => known === kindText);
  if (kind === undefined) return undefined;
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  return { kind, namespace, name };
}
