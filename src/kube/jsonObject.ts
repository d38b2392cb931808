/** Raw objects of the API, and the few fields of them that every client must trust. */

export type JsonObject = Readonly<Record<string, unknown>>;

export interface ListPage {
  readonly items: readonly JsonObject[];
  /** The version of the list: a watch from here misses nothing. */
  readonly resourceVersion: string;
  /** The token for the next page; absent on the last one. */
  readonly continue?: string;
}

/** What a cache needs of an object. */
export interface ObjectIdentity {
  readonly uid: string;
  readonly name: string;
  readonly namespace?: string;
  readonly resourceVersion: string;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined if the object lacks one of the fields that every stored object has. */
export function identityOf(object: JsonObject): ObjectIdentity | undefined {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const { uid, name, namespace, resourceVersion } = metadata;
  if (!isFilled(uid) || !isFilled(name) || !isFilled(resourceVersion)) {
    return undefined;
  }
  return { uid, name, resourceVersion, ...(isFilled(namespace) ? { namespace } : {}) };
}

/** Undefined if the body is not a list. */
export function listPage(body: JsonObject): ListPage | undefined {
  const metadata = isJsonObject(body.metadata) ? body.metadata : {};
  // An empty list of some servers is `null`.
  const items: unknown = body.items ?? [];
  if (!isFilled(metadata.resourceVersion) || !Array.isArray(items)) {
    return undefined;
  }
  const kind = typeof body.kind === 'string' ? body.kind.replace(/List$/, '') : '';
  return {
    items: items
      .filter(isJsonObject)
      .map((item) =>
        item.kind === undefined ? { ...item, apiVersion: body.apiVersion, kind } : item,
      ),
    resourceVersion: metadata.resourceVersion,
    ...(isFilled(metadata.continue) ? { continue: metadata.continue } : {}),
  };
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
