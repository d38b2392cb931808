/** The faults of servers, files and networks that a healthy API server does not show; over loopback. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiError, PODS, createKubeClient, loadKubeConfig } from '../../../src/kube';
import type { ApiFailure, KubeClient, Patch } from '../../../src/kube';
import { ManualClock, settled } from '../../support/manualClock';

interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Answer = (request: Request, response: ServerResponse) => void;

let dir: string;
let requests: Request[];
let answer: Answer;
let clock: ManualClock;
let client: KubeClient;
let closeServer: () => Promise<void>;
let address: string;

beforeEach(async () => {
  requests = [];
  answer = (_request, response) => response.end('{}');
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk: string) => (body += chunk));
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      const request = { method, url, headers, body };
      requests.push(request);
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  closeServer = () =>
    new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
      server.closeAllConnections();
    });
  dir = await mkdtemp(join(tmpdir(), 'kube-client-'));
  clock = new ManualClock();
  client = await clientOf(address);
});

afterEach(async () => {
  await closeServer();
  await client.close();
  await rm(dir, { recursive: true });
});

async function clientOf(server: string): Promise<KubeClient> {
  const path = join(dir, 'kubeconfig');
  const config = {
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    users: [{ name: 'test', user: { username: 'someone', password: 'secret' } }],
  };
  await writeFile(path, JSON.stringify(config));
  return createKubeClient(loadKubeConfig({ kind: 'File', path }), { clock, userAgent: 'tests' });
}

async function failureOf(call: Promise<unknown>): Promise<ApiFailure> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error.failure;
    throw error;
  }
  throw new Error('the call did not fail');
}

async function eventsOf(resourceVersion: string): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of client.watch(PODS, { resourceVersion, timeoutSeconds: 9 })) {
    types.push(type);
  }
  return types;
}

const web = { ...PODS, namespace: 'shop', name: 'web' };

describe('a call', () => {
  it.each<[Patch, string, string]>([
    [{ type: 'json', operations: [] }, 'application/json-patch+json', ''],
    [{ type: 'merge', body: {} }, 'application/merge-patch+json', ''],
    [{ type: 'strategic', body: {} }, 'application/strategic-merge-patch+json', ''],
    [
      { type: 'apply', body: {}, fieldManager: 'boost' },
      'application/apply-patch+yaml',
      '?fieldManager=boost&force=true',
    ],
  ])('sends a patch of its kind: %j', async (patch, contentType, query) => {
    await client.patch({ ...web, subresource: 'resize' }, patch);
    expect(requests).toMatchObject([
      {
        method: 'PATCH',
        url: `/api/v1/namespaces/shop/pods/web/resize${query}`,
        headers: { 'content-type': contentType, 'user-agent': 'tests' },
      },
    ]);
  });

  it('gives fields back that no type knows', async () => {
    const object = { spec: { futureField: [1, { deep: null }] } };
    answer = (_request, response) => response.end(JSON.stringify(object));
    expect(await client.get(web)).toEqual(object);
  });

  it('puts the uid into the precondition of a deletion', async () => {
    await client.delete(web, { uid: 'u1', gracePeriodSeconds: 0 });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u1' },
    });
  });

  it('asks for a dry run in the query', async () => {
    await client.create({ ...PODS, namespace: 'shop' }, {}, { dryRun: true });
    expect(requests[0]?.url).toBe('/api/v1/namespaces/shop/pods?dryRun=All');
  });

  it('goes below the path of a server that has one', async () => {
    await client.close();
    client = await clientOf(`${address}/k8s/clusters/c-1/`);
    await client.get(web);
    expect(requests[0]?.url).toBe('/k8s/clusters/c-1/api/v1/namespaces/shop/pods/web');
  });

  it('ends at its time limit when the server is mute', async () => {
    answer = () => undefined;
    const failure = failureOf(client.get(web, { timeoutMs: 3_000 }));
    await expectRequest();
    await clock.advance(3_000);
    expect(await failure).toMatchObject({ kind: 'Timeout' });
  });

  it('ends at its time limit when the answer stops in the middle', async () => {
    answer = (_request, response) => void response.write('{"kind":');
    const failure = failureOf(client.get(web));
    await expectRequest();
    await clock.advance(10_000);
    expect(await failure).toMatchObject({ kind: 'Timeout' });
  });

  it('ends when its caller gives it up', async () => {
    answer = () => undefined;
    const controller = new AbortController();
    const failure = failureOf(client.get(web, { signal: controller.signal }));
    await expectRequest();
    controller.abort();
    expect(await failure).toMatchObject({ kind: 'Cancelled' });
    expect(clock.timers).toBe(0);
  });

  it('tells a connection that breaks from an answer', async () => {
    answer = (_request, response) => response.destroy();
    expect(await failureOf(client.get(web))).toMatchObject({ kind: 'Network' });
  });

  it('asks for the metadata alone where that is enough', async () => {
    answer = (_request, response) =>
      response.end('{"metadata":{"resourceVersion":"1"},"items":[]}');
    await client.list(PODS, { parts: 'Metadata' });
    await client.list(PODS);
    expect(requests.map(({ headers }) => headers.accept)).toEqual([
      'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
      'application/json',
    ]);
  });

  it.each(['', 'OK', '[]', '{"unfinished":'])('does not accept %j as an object', async (body) => {
    answer = (_request, response) => response.end(body);
    expect(await failureOf(client.get(web))).toMatchObject({ kind: 'Malformed' });
  });

  it('does not accept an object as a list', async () => {
    answer = (_request, response) => response.end('{"kind":"Pod","metadata":{}}');
    expect(await failureOf(client.list(PODS))).toMatchObject({ kind: 'Malformed' });
  });

  it('hands the time of a throttling server on', async () => {
    answer = (_request, response) => response.writeHead(429, { 'retry-after': '4' }).end();
    expect(await failureOf(client.get(web))).toMatchObject({
      kind: 'Throttled',
      retryAfterMs: 4_000,
      request: 'GET pods shop/web',
    });
  });

  it('is repeated once after a 401, not more', async () => {
    answer = (_request, response) => response.writeHead(401).end('{"reason":"Unauthorized"}');
    expect(await failureOf(client.get(web))).toMatchObject({ kind: 'Unauthorized' });
    expect(requests).toHaveLength(2);
  });

  it('keeps its connections for the calls that follow', async () => {
    const ports = new Set<number | undefined>();
    answer = (_request, response) => {
      ports.add(response.socket?.remotePort);
      response.end('{}');
    };
    for (let call = 0; call < 20; call += 1) await client.get(web);
    expect(ports.size).toBeLessThanOrEqual(2);
  });
});

describe('a list', () => {
  it('gives items the kind that the list leaves out', async () => {
    const list = {
      kind: 'PodList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '7', continue: 'next' },
      items: [{ metadata: { name: 'web' } }],
    };
    answer = (_request, response) => response.end(JSON.stringify(list));
    expect(await client.list(PODS, { limit: 1 })).toEqual({
      items: [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } }],
      resourceVersion: '7',
      continue: 'next',
    });
  });

  it('asks for an exact version on its first page only, since a token holds it', async () => {
    answer = (_request, response) => response.end('{"metadata":{"resourceVersion":"7"}}');
    await client.list(PODS, { exactResourceVersion: '7' });
    await client.list(PODS, { exactResourceVersion: '7', continue: 'next' });
    expect(requests.map(({ url }) => url)).toEqual([
      '/api/v1/pods?resourceVersion=7&resourceVersionMatch=Exact',
      '/api/v1/pods?continue=next',
    ]);
  });
});

describe('a watch', () => {
  const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
  const pod = { metadata: { name: 'wéb', uid: 'u1', resourceVersion: '6' } };

  it('asks for bookmarks and ends when the server ends it', async () => {
    answer = (_request, response) =>
      response.end(line('ADDED', pod) + line('BOOKMARK', { metadata: { resourceVersion: '9' } }));
    expect(await eventsOf('5')).toEqual(['ADDED', 'BOOKMARK']);
    expect(requests[0]?.url).toBe(
      '/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=9',
    );
  });

  it('puts events together that come byte by byte', async () => {
    answer = (_request, response) => {
      const bytes = Buffer.from(line('ADDED', pod) + line('DELETED', pod));
      const send = (from: number): void => {
        if (from >= bytes.length) {
          response.end();
          return;
        }
        response.write(bytes.subarray(from, from + 7), () => {
          setImmediate(send, from + 7);
        });
      };
      send(0);
    };
    expect(await eventsOf('5')).toEqual(['ADDED', 'DELETED']);
  });

  it.each([
    ['the status of the answer', 410],
    ['an ERROR event', 200],
  ])('tells of a version that is too old by %s', async (_, status) => {
    const gone = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' };
    answer = (_request, response) =>
      response.writeHead(status).end(status === 200 ? line('ERROR', gone) : JSON.stringify(gone));
    expect(await failureOf(eventsOf('5'))).toMatchObject({ kind: 'Gone', reason: 'Expired' });
  });

  it.each([
    ['no JSON', '<html>\n'],
    ['no event', '{"kind":"Status"}\n'],
    ['an unknown type', line('RENAMED', pod)],
    ['an object without identity', line('ADDED', { metadata: {} })],
  ])('refuses a line that is %s', async (_, text) => {
    answer = (_request, response) => response.end(text);
    expect(await failureOf(eventsOf('5'))).toMatchObject({ kind: 'Malformed' });
  });

  it('tells a stream that was cut inside an event from one that ended', async () => {
    answer = (_request, response) => response.end(line('ADDED', pod).slice(0, -9));
    expect(await failureOf(eventsOf('5'))).toMatchObject({ kind: 'Network' });
  });

  it('waits for the first byte no longer than for any call', async () => {
    answer = () => undefined;
    const failure = failureOf(eventsOf('5'));
    await expectRequest();
    await clock.advance(10_000);
    expect(await failure).toMatchObject({ kind: 'Timeout' });
  });

  it('frees its connection when the reader breaks off', async () => {
    const closed = new Promise<void>((resolve) => {
      answer = (_request, response) => {
        response.on('close', resolve);
        response.write(line('ADDED', pod));
      };
    });
    for await (const event of client.watch(PODS, { resourceVersion: '5', timeoutSeconds: 9 })) {
      expect(event.object).toEqual(pod);
      break;
    }
    await closed;
  });

  it('ends with the signal of its caller', async () => {
    answer = (_request, response) => void response.write(line('ADDED', pod));
    const controller = new AbortController();
    const { signal } = controller;
    const read = async (): Promise<void> => {
      const options = { resourceVersion: '5', timeoutSeconds: 9, signal };
      for await (const { type } of client.watch(PODS, options)) {
        expect(type).toBe('ADDED');
        controller.abort();
      }
    };
    expect(await failureOf(read())).toMatchObject({ kind: 'Cancelled' });
  });
});

describe('discovery', () => {
  it.each([
    ['names it', 200, '{"resources":[{"name":"pods"}]}', true],
    ['does not name it', 200, '{"resources":[{"name":"nodes"}]}', false],
    ['does not know the group', 404, '{"reason":"NotFound"}', false],
  ])('says whether a resource is served: %s', async (_, status, body, expected) => {
    answer = (_request, response) => response.writeHead(status).end(body);
    expect(await client.serves(PODS)).toBe(expected);
  });

  it('says nothing when the server is not well', async () => {
    answer = (_request, response) => response.writeHead(503).end();
    expect(await failureOf(client.serves(PODS))).toMatchObject({ kind: 'Server' });
  });
});

async function expectRequest(): Promise<void> {
  while (requests.length === 0) await settled();
}
