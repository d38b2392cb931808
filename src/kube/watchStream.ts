/** The bytes of a watch as events: one JSON document per line. */
import { ApiError, failureOfAnswer } from './apiFailure';
import { identityOf, isJsonObject, parseJsonObject } from './jsonObject';
import type { JsonObject } from './jsonObject';

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  /** Raw; of a bookmark only metadata.resourceVersion has a meaning. */
  readonly object: JsonObject;
}

/** etcd takes 1.5 MiB per object by default and Protobuf is denser than JSON. */
const LONGEST_LINE_BYTES = 16 * 2 ** 20;

/** Splits chunks at newlines; a last line without one is cut off and dropped with an error. */
export async function* watchLines(chunks: AsyncIterable<unknown>): AsyncGenerator<string, void> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    if (!Buffer.isBuffer(chunk)) {
      throw new TypeError('a watch is made of bytes');
    }
    let start = 0;
    let newline = chunk.indexOf(0x0a);
    while (newline !== -1) {
      const line = Buffer.concat([...pending, chunk.subarray(start, newline)]);
      pending = [];
      pendingBytes = 0;
      if (line.length > 0) {
        yield line.toString('utf8');
      }
      start = newline + 1;
      newline = chunk.indexOf(0x0a, start);
    }
    const rest = chunk.subarray(start);
    pendingBytes += rest.length;
    if (pendingBytes > LONGEST_LINE_BYTES) {
      throw new RangeError(`a watch event is larger than ${LONGEST_LINE_BYTES} bytes`);
    }
    pending.push(rest);
  }
  if (pendingBytes > 0) {
    throw new Error('the stream ended inside an event');
  }
}

/** @throws ApiError for an ERROR event (a `Status` inside) and for what is not an event at all. */
export function parseWatchEvent(line: string, request: string, now: number): WatchEvent {
  const event = parseJsonObject(line);
  const object = isJsonObject(event?.object) ? event.object : undefined;
  if (event === undefined || object === undefined) {
    throw malformed(request, 'a line of the watch is not an event', line.slice(0, 200));
  }
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      if (identityOf(object) === undefined) {
        throw malformed(request, 'an event has no complete metadata', object);
      }
      return { type: event.type, object };
    case 'BOOKMARK':
      return { type: event.type, object };
    case 'ERROR':
      throw new ApiError(
        failureOfAnswer({
          request,
          status: typeof object.code === 'number' ? object.code : 500,
          body: JSON.stringify(object),
          now,
          sent: 'Other',
        }),
      );
    default:
      throw malformed(request, `unknown event type ${JSON.stringify(event.type)}`, object);
  }
}

function malformed(request: string, message: string, source: unknown): ApiError {
  return new ApiError({ kind: 'Malformed', request, message, source });
}
