/** Applies a JSON patch with an implementation that is not ours. */
import fastJsonPatch from 'fast-json-patch';
import type { Operation } from 'fast-json-patch';
import type { JsonPatch } from '../../src/boost-engine';

/** A changed copy; throws where the patch does not apply. */
export function patched<T extends object>(object: T, patch: JsonPatch): T {
  const operations: Operation[] = structuredClone([...patch]);
  return fastJsonPatch.applyPatch(structuredClone(object), operations, true).newDocument;
}
