import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../../src/kube';
import { ResourceStore } from '../../../src/kube/resourceCache';

function pod(name: string, uid: string, resourceVersion: string, namespace = 'shop'): JsonObject {
  return { metadata: { name, namespace, uid, resourceVersion } };
}

function storeOf(...items: readonly JsonObject[]): ResourceStore {
  const store = new ResourceStore();
  store.apply({ kind: 'Replaced', items, cause: 'Listed' });
  return store;
}

describe('a cache', () => {
  it('finds an object by name, by uid, in its namespace and among all', () => {
    const web = pod('web', 'u1', '1');
    const other = pod('web', 'u2', '2', 'other');
    const store = storeOf(web, other);
    expect(store.get('shop', 'web')).toBe(web);
    expect(store.byUid('u2')).toBe(other);
    expect(store.listNamespace('other')).toEqual([other]);
    expect(store.listNamespace('nowhere')).toEqual([]);
    expect(store.list()).toEqual([web, other]);
    expect(store.size).toBe(2);
  });

  it('finds a cluster-scoped object without a namespace', () => {
    const node = { metadata: { name: 'n1', uid: 'u1', resourceVersion: '1' } };
    expect(storeOf(node).get(undefined, 'n1')).toBe(node);
  });

  it('announces an object that is new, one that changed, and none that did not', () => {
    const store = storeOf(pod('old', 'u1', '1'), pod('same', 'u2', '2'));
    const changed = pod('old', 'u1', '3');
    const added = pod('new', 'u3', '4');
    const items = [changed, pod('same', 'u2', '2'), added];
    expect(store.apply({ kind: 'Replaced', items, cause: 'Listed' })).toEqual([
      { type: 'MODIFIED', object: changed },
      { type: 'ADDED', object: added },
    ]);
  });

  it('announces a deletion that was missed, with the object as last known', () => {
    const gone = pod('gone', 'u1', '1');
    const store = storeOf(gone);
    expect(store.apply({ kind: 'Replaced', items: [], cause: 'Listed' })).toEqual([
      { type: 'DELETED', object: gone },
    ]);
    expect(store.listNamespace('shop')).toEqual([]);
  });

  it('announces a name that was taken over as a deletion and then an addition', () => {
    const before = pod('web', 'u1', '1');
    const after = pod('web', 'u2', '9');
    const both = [
      { type: 'DELETED', object: before },
      { type: 'ADDED', object: after },
    ];
    expect(storeOf(before).apply({ kind: 'Replaced', items: [after], cause: 'Listed' })).toEqual(
      both,
    );
    const store = storeOf(before);
    expect(store.apply({ kind: 'Upserted', object: after })).toEqual(both);
    expect(store.byUid('u1')).toBeUndefined();
    expect(store.get('shop', 'web')).toBe(after);
  });

  it('does not let a late deletion of the old object remove the new one', () => {
    const after = pod('web', 'u2', '9');
    const store = storeOf(after);
    expect(store.apply({ kind: 'Removed', object: pod('web', 'u1', '8') })).toEqual([]);
    expect(store.get('shop', 'web')).toBe(after);
  });

  it('announces a deletion with the object that the event brought', () => {
    const last = pod('web', 'u1', '5');
    const store = storeOf(pod('web', 'u1', '1'));
    expect(store.apply({ kind: 'Removed', object: last })).toEqual([
      { type: 'DELETED', object: last },
    ]);
    expect(store.size).toBe(0);
  });

  it('announces an event that was delivered twice once', () => {
    const object = pod('web', 'u1', '5');
    const store = storeOf();
    expect(store.apply({ kind: 'Upserted', object })).toHaveLength(1);
    expect(store.apply({ kind: 'Upserted', object })).toHaveLength(0);
  });

  it('leaves out what has no identity', () => {
    expect(storeOf({}, { metadata: { name: 'x' } }, { metadata: 7 }).size).toBe(0);
  });
});
