/** The objects of one watch as last delivered, and what changes when the watch brings news. */
import { identityOf } from './jsonObject';
import type { JsonObject, ObjectIdentity } from './jsonObject';
import type { WatchChange } from './watch';

/** What readers see: the last complete list and every event since. */
export interface ResourceCache {
  readonly size: number;
  /** Without a namespace: a cluster-scoped object. */
  get(namespace: string | undefined, name: string): JsonObject | undefined;
  byUid(uid: string): JsonObject | undefined;
  list(): readonly JsonObject[];
  listNamespace(namespace: string): readonly JsonObject[];
}

export interface ResourceChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Of a deletion: as the event brought it, or as last known if the event was missed. */
  readonly object: JsonObject;
}

interface Entry {
  readonly identity: ObjectIdentity;
  readonly object: JsonObject;
}

/**
 * Guarantees: a name has at most one object; an object that took over a name is announced after
 * the deletion of the one before; an object that did not change is not announced.
 */
export class ResourceStore implements ResourceCache {
  #byUid = new Map<string, Entry>();
  #byNamespace = new Map<string, Map<string, Entry>>();

  get size(): number {
    return this.#byUid.size;
  }

  get(namespace: string | undefined, name: string): JsonObject | undefined {
    return this.#byNamespace.get(namespace ?? '')?.get(name)?.object;
  }

  byUid(uid: string): JsonObject | undefined {
    return this.#byUid.get(uid)?.object;
  }

  list(): readonly JsonObject[] {
    return Array.from(this.#byUid.values(), ({ object }) => object);
  }

  listNamespace(namespace: string): readonly JsonObject[] {
    const entries = this.#byNamespace.get(namespace);
    return entries === undefined ? [] : Array.from(entries.values(), ({ object }) => object);
  }

  /** The cache has the change already when the caller sees the first of the announcements. */
  apply(change: WatchChange): readonly ResourceChange[] {
    switch (change.kind) {
      case 'Replaced':
        return this.#replace(change.items);
      case 'Upserted':
        return this.#upsert(change.object);
      case 'Removed':
        return this.#remove(change.object);
    }
  }

  #replace(items: readonly JsonObject[]): readonly ResourceChange[] {
    const before = this.#byUid;
    this.#byUid = new Map();
    this.#byNamespace = new Map();
    for (const object of items) {
      const identity = identityOf(object);
      if (identity !== undefined) {
        this.#drop(this.#named(identity));
        this.#put({ identity, object });
      }
    }
    const changes: ResourceChange[] = [];
    for (const [uid, { object }] of before) {
      if (!this.#byUid.has(uid)) {
        changes.push({ type: 'DELETED', object });
      }
    }
    for (const [uid, entry] of this.#byUid) {
      changes.push(...difference(before.get(uid), entry));
    }
    return changes;
  }

  #upsert(object: JsonObject): readonly ResourceChange[] {
    const identity = identityOf(object);
    if (identity === undefined) {
      return [];
    }
    const changes: ResourceChange[] = [];
    const named = this.#named(identity);
    if (named !== undefined && named.identity.uid !== identity.uid) {
      this.#drop(named);
      changes.push({ type: 'DELETED', object: named.object });
    }
    const before = this.#byUid.get(identity.uid);
    const entry = { identity, object };
    this.#put(entry);
    return changes.concat(difference(before, entry));
  }

  #remove(object: JsonObject): readonly ResourceChange[] {
    const identity = identityOf(object);
    const entry = identity === undefined ? undefined : this.#byUid.get(identity.uid);
    if (entry === undefined) {
      return [];
    }
    this.#drop(entry);
    return [{ type: 'DELETED', object }];
  }

  #named({ namespace, name }: ObjectIdentity): Entry | undefined {
    return this.#byNamespace.get(namespace ?? '')?.get(name);
  }

  #put(entry: Entry): void {
    const { uid, namespace = '', name } = entry.identity;
    const names = this.#byNamespace.get(namespace) ?? new Map<string, Entry>();
    this.#byNamespace.set(namespace, names.set(name, entry));
    this.#byUid.set(uid, entry);
  }

  #drop(entry: Entry | undefined): void {
    if (entry === undefined) {
      return;
    }
    const { uid, namespace = '', name } = entry.identity;
    this.#byUid.delete(uid);
    const names = this.#byNamespace.get(namespace);
    names?.delete(name);
    if (names?.size === 0) {
      this.#byNamespace.delete(namespace);
    }
  }
}

function difference(before: Entry | undefined, after: Entry): readonly ResourceChange[] {
  if (before === undefined) {
    return [{ type: 'ADDED', object: after.object }];
  }
  return before.identity.resourceVersion === after.identity.resourceVersion
    ? []
    : [{ type: 'MODIFIED', object: after.object }];
}
