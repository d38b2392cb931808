/** The webhooks over plain HTTP: whole answers for whatever a client may send. */
import { createServer, request } from 'node:http';
import type { ClientRequest, IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MUTATE_PATH, VALIDATE_PATH, admissionApp } from '../../../src/admission/app';
import type { NamespaceSource } from '../../../src/admission';
import { compileBoost } from '../../../src/boost-engine';
import { createMetrics, listen, portOf } from '../../../src/observability';
import type { Metrics } from '../../../src/observability';
import { aBoost, aContainer, aPod } from '../../support/builders';
import { ManualClock } from '../../support/manualClock';
import { RecordingLogger } from '../../support/recordingLogger';
import { aBoostReview, aReview } from './reviews';

const UID = 'c1d3b2f0-0d0b-4f6f-8f5c-0d4d5b0c4a11';

const oneBoost: NamespaceSource = {
  view: () => ({ boosts: [compileBoost(aBoost())], limitRanges: [], quotas: [] }),
  problem: () => undefined,
  liveChecks: [],
};
const brokenBoosts: NamespaceSource = {
  view: () => {
    throw new Error('the cache is broken');
  },
  problem: () => undefined,
  liveChecks: [],
};

let server: Server;
let clock: ManualClock;
let logger: RecordingLogger;
let metrics: Metrics;

async function serve(namespaces: NamespaceSource): Promise<void> {
  const handle = admissionApp({ namespaces, logger, metrics, clock }).callback();
  server = createServer((incoming, response) => void handle(incoming, response));
  await listen(server, { host: '127.0.0.1', port: 0 });
}

beforeEach(() => {
  clock = new ManualClock();
  logger = new RecordingLogger();
  metrics = createMetrics();
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

interface Sent {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function open({ path = MUTATE_PATH, method = 'POST', headers = {} }: Sent): ClientRequest {
  return request({
    host: '127.0.0.1',
    port: portOf(server),
    path,
    method,
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

async function answerTo(outgoing: ClientRequest): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  const isJson = response.headers['content-type']?.startsWith('application/json') === true;
  return { status: response.statusCode ?? 0, body: isJson ? JSON.parse(text) : text };
}

function send(body: string | Buffer, sent: Sent = {}): Promise<Answer> {
  const outgoing = open(sent);
  outgoing.end(body);
  return answerTo(outgoing);
}

function sendReview(review: unknown, path = MUTATE_PATH): Promise<Answer> {
  return send(JSON.stringify(review), { path });
}

async function countOf(result: string, path = MUTATE_PATH): Promise<number> {
  const { values } = await metrics.admissionRequests.get();
  const found = values.find(({ labels }) => labels.path === path && labels.result === result);
  return found?.value ?? 0;
}

function reviewAnswer(response: Readonly<Record<string, unknown>>): Answer {
  return {
    status: 200,
    body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response },
  };
}

describe('a body that is no review', () => {
  beforeEach(() => serve(oneBoost));

  it.each<[string, string | Buffer, string]>([
    ['empty', '', 'the body is empty\n'],
    ['cut off', JSON.stringify(aReview()).slice(0, -10), 'the body is not JSON\n'],
    ['YAML', 'kind: AdmissionReview', 'the body is not JSON\n'],
    ['not text', Buffer.from([0x7b, 0xff, 0x00, 0x7d]), 'the body is not JSON\n'],
    ['a number', '7', 'the body is not a JSON object\n'],
    ['null', 'null', 'the body is not a JSON object\n'],
    ['a list', '[]', 'the body is not a JSON object\n'],
    ['nested without end', '['.repeat(7 * 2 ** 20), 'the body nests deeper than 100\n'],
    ['nested in objects', '{"a":'.repeat(101), 'the body nests deeper than 100\n'],
    [
      'without a uid',
      JSON.stringify(aReview({ uid: undefined })),
      'request.uid must be a text of 1 to 128 characters: nothing can be answered without it\n',
    ],
    [
      'without a request',
      JSON.stringify(aReview({}, { request: null })),
      'request.uid must be a text of 1 to 128 characters: nothing can be answered without it\n',
    ],
  ])('is refused with a clear text: %s', async (_what, body, why) => {
    for (const path of [MUTATE_PATH, VALIDATE_PATH]) {
      expect(await send(body, { path })).toEqual({ status: 400, body: why });
      expect(await countOf('MalformedReview', path)).toBe(1);
    }
    expect(logger.lines).toHaveLength(2);
  });

  it('may have brackets in its texts', async () => {
    const annotations = { note: `${'['.repeat(500)}\\"${'{'.repeat(500)}` };
    const { status } = await sendReview(aReview({ object: aPod({ annotations }) }));
    expect(status).toBe(200);
    expect(await countOf('Boost')).toBe(1);
  });
});

describe('a review that cannot be read but has a uid', () => {
  const why =
    'the review cannot be read: apiVersion and kind must be admission.k8s.io/v1 and AdmissionReview';
  const review = aReview({}, { apiVersion: 'admission.k8s.io/v1beta1' });
  beforeEach(() => serve(oneBoost));

  it('allows a pod as it is', async () => {
    expect(await sendReview(review)).toEqual(
      reviewAnswer({ uid: UID, allowed: true, status: { code: 400, message: why } }),
    );
  });

  it('refuses a boost', async () => {
    expect(await sendReview(review, VALIDATE_PATH)).toEqual(
      reviewAnswer({
        uid: UID,
        allowed: false,
        status: { code: 400, reason: 'BadRequest', message: why },
      }),
    );
  });
});

describe('a mistake of ours while judging', () => {
  const message = 'the review could not be judged, which is a mistake of startup-cpu-boost';
  beforeEach(() => serve(brokenBoosts));

  it('allows a pod as it is, with an error in log and metrics', async () => {
    expect(await sendReview(aReview())).toEqual(
      reviewAnswer({ uid: UID, allowed: true, status: { code: 500, message } }),
    );
    expect(await countOf('Error')).toBe(1);
    expect(logger.lines).toMatchObject([
      { level: 'error', message, fields: { uid: UID, error: { message: 'the cache is broken' } } },
    ]);
  });

  it('refuses a boost, which nobody has reviewed', async () => {
    expect(await sendReview(aBoostReview({ object: aBoost() }), VALIDATE_PATH)).toEqual(
      reviewAnswer({
        uid: UID,
        allowed: false,
        status: { code: 500, reason: 'InternalError', message },
      }),
    );
    expect(await countOf('Error', VALIDATE_PATH)).toBe(1);
  });
});

describe('what is not plain JSON over POST', () => {
  beforeEach(() => serve(oneBoost));

  it.each<[string, Sent]>([
    ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['YAML', { headers: { 'content-type': 'application/yaml' } }],
    ['protobuf', { headers: { 'content-type': 'application/vnd.kubernetes.protobuf' } }],
    ['JSON of another kind', { headers: { 'content-type': 'application/jsonx' } }],
    ['no type', { headers: { 'content-type': '' } }],
  ])('is refused by its type: %s', async (_what, sent) => {
    expect(await send(JSON.stringify(aReview()), sent)).toEqual({
      status: 415,
      body: 'Content-Type must be application/json\n',
    });
  });

  it('may name its charset', async () => {
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await send(JSON.stringify(aReview()), { headers })).status).toBe(200);
  });

  it('is refused where it is compressed, since its true size is not known', async () => {
    const body = gzipSync(JSON.stringify(aReview()));
    expect(await send(body, { headers: { 'content-encoding': 'gzip' } })).toEqual({
      status: 415,
      body: 'the body must not be compressed\n',
    });
  });

  it('is refused by its method, and elsewhere not found', async () => {
    expect((await send('', { method: 'GET' })).status).toBe(405);
    expect((await send('{}', { path: '/' })).status).toBe(404);
  });
});

describe('a body beyond its bounds', () => {
  beforeEach(() => serve(oneBoost));

  it('is refused by its length before it is sent', async () => {
    const outgoing = open({ headers: { 'content-length': String(7 * 2 ** 20 + 1) } });
    outgoing.flushHeaders();
    expect(await answerTo(outgoing)).toEqual({
      status: 413,
      body: 'the body has more than 7340032 bytes\n',
    });
    expect(await countOf('BodyTooLarge')).toBe(1);
  });

  it('is refused while it is read where its length is not known', async () => {
    const outgoing = open({ headers: { 'transfer-encoding': 'chunked' } });
    outgoing.write(Buffer.alloc(7 * 2 ** 20 + 1, ' '));
    expect(await answerTo(outgoing)).toMatchObject({ status: 413 });
  });

  it('may be as large as a pod and its old state can be', async () => {
    const pod = aPod({ containers: [aContainer({ args: ['x'.repeat(3 * 2 ** 20)] })] });
    const review = aReview({ object: pod, oldObject: pod });
    expect((await sendReview(review)).status).toBe(200);
    expect(await countOf('Boost')).toBe(1);
  });

  it('is refused where it does not end in time', async () => {
    const outgoing = open({ headers: { 'transfer-encoding': 'chunked' } });
    outgoing.write('{');
    const answer = answerTo(outgoing);
    await waitFor(() => clock.timers === 1);
    await clock.advance(10_000);
    expect(await answer).toEqual({
      status: 408,
      body: 'the body was not complete within 10 s\n',
    });
  });

  it('is refused where the bodies together would fill the memory, until they are gone', async () => {
    const hogs = Array.from({ length: 10 }, () =>
      open({ headers: { 'transfer-encoding': 'chunked' } }),
    );
    const answers = hogs.map((hog) => answerTo(hog));
    for (const hog of hogs) hog.write(Buffer.alloc(7 * 2 ** 20, ' '));
    // Seen from our side: the client is still writing, and may not read the answer.
    await waitFor(() => logger.lines.some(({ fields }) => fields.result === 'TooManyBodies'));
    expect(logger.lines).toMatchObject([
      {
        level: 'warn',
        message: 'review refused: more than 67108864 bytes of bodies are being read',
        fields: { status: 503 },
      },
    ]);
    for (const hog of hogs) hog.destroy();
    await Promise.allSettled(answers);
    await waitFor(() => clock.timers === 0);
    expect((await sendReview(aReview())).status).toBe(200);
  });

  it('leaves nothing behind where the client goes away', async () => {
    const outgoing = open({ headers: { 'transfer-encoding': 'chunked' } });
    outgoing.on('error', () => undefined);
    outgoing.write('{');
    await waitFor(() => clock.timers === 1);
    outgoing.destroy();
    await waitFor(() => clock.timers === 0);
    expect(await countOf('BodyCutOff')).toBe(1);
  });
});

describe('older ways to speak HTTP', () => {
  beforeEach(() => serve(oneBoost));

  function post(version: string): string {
    const body = JSON.stringify(aReview());
    return [
      `POST ${MUTATE_PATH} HTTP/${version}`,
      'Host: webhook',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n');
  }

  it('HTTP/1.0 gets one answer and the end of the connection', async () => {
    const text = await textAfter(post('1.0'), (received) => received.isClosed);
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  });

  it('reviews that are sent one after another without waiting get one answer each', async () => {
    const answers = (text: string) => text.match(/"uid":/g)?.length ?? 0;
    const text = await textAfter(post('1.1').repeat(20), ({ text }) => answers(text) >= 20);
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(20);
  });

  function textAfter(
    sent: string,
    isDone: (received: { text: string; isClosed: boolean }) => boolean,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(portOf(server), '127.0.0.1');
      const received = { text: '', isClosed: false };
      const look = (): void => {
        if (!isDone(received)) return;
        socket.destroy();
        resolve(received.text);
      };
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        received.text += chunk.toString();
        look();
      });
      socket.on('end', () => {
        received.isClosed = true;
        look();
      });
      socket.write(sent);
    });
  }
});

describe('what is written down', () => {
  beforeEach(() => serve(oneBoost));

  it('is one line and one count for each review, and its time', async () => {
    await sendReview(aReview());
    await sendReview(aReview({ dryRun: true }));
    await sendReview(aReview({ object: aPod({ labels: {} }) }));
    await sendReview(aBoostReview({ object: aBoost() }), VALIDATE_PATH);
    expect(logger.lines.map(({ level, fields }) => [level, fields.path, fields.result])).toEqual([
      ['info', MUTATE_PATH, 'Boost'],
      ['debug', MUTATE_PATH, 'DryRun'],
      ['debug', MUTATE_PATH, 'NoBoostMatches'],
      ['info', VALIDATE_PATH, 'Accepted'],
    ]);
    for (const result of ['Boost', 'DryRun', 'NoBoostMatches']) {
      expect(await countOf(result)).toBe(1);
    }
    const { values } = await metrics.admissionSeconds.get();
    const counts = values.filter(({ metricName }) => metricName?.endsWith('_count') === true);
    expect(counts.map(({ labels, value }) => [labels.path, value])).toEqual([
      [MUTATE_PATH, 3],
      [VALIDATE_PATH, 1],
    ]);
  });
});

/** The other side of a socket acts a few turns of the event loop later. */
async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
