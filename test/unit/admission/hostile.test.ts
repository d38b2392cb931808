/** The whole admission process against clients that mean harm: after each, a review is answered as ever. */
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startAdmission } from '../../../src/admission';
import type { AdmissionProcess } from '../../../src/admission';
import { MUTATE_PATH } from '../../../src/admission/app';
import { compileBoost } from '../../../src/boost-engine';
import { systemClock } from '../../../src/kube';
import { createMetrics } from '../../../src/observability';
import { aBoost } from '../../support/builders';
import { aCertificate, always } from '../../support/certificates';
import { RecordingLogger } from '../../support/recordingLogger';
import { aReview } from './reviews';

const HOST = '127.0.0.1';

let ca: string;
let logger: RecordingLogger;
let admission: AdmissionProcess;
let sockets: Socket[] = [];

beforeAll(async () => {
  const certificate = await aCertificate({ names: ['admission.example'] });
  logger = new RecordingLogger();
  const boosts = [compileBoost(aBoost())];
  admission = await startAdmission({
    namespaces: {
      view: () => ({ boosts, limitRanges: [], quotas: [] }),
      problem: () => undefined,
      liveChecks: [],
    },
    certificates: always(certificate),
    settings: { webhookAddress: { host: HOST, port: 0 }, drainMs: 0 },
    logger,
    metrics: createMetrics(),
    clock: systemClock(),
  });
  ({ ca } = certificate);
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  expect(await review()).toMatchObject({ allowed: true, patchType: 'JSONPatch' });
});

afterAll(async () => {
  // Nobody holds it up, and nothing of all this was a fault of ours.
  await admission.stop();
  expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

/** A good review over a connection of its own. */
async function review(): Promise<unknown> {
  const agent = new Agent({ ca });
  const outgoing = request({
    host: HOST,
    port: admission.port,
    path: MUTATE_PATH,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    agent,
  });
  outgoing.end(JSON.stringify(aReview()));
  const response = await new Promise<AsyncIterable<Buffer>>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  agent.destroy();
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
  return typeof body === 'object' && body !== null && 'response' in body ? body.response : body;
}

async function openPlain(): Promise<Socket> {
  const socket = connectPlain(admission.port, HOST);
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function open(options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: HOST, port: admission.port, ca, ...options });
  sockets.push(socket);
  await once(socket, 'secureConnect');
  socket.on('error', () => undefined);
  return socket;
}

interface Post {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function post({ headers = {}, body = JSON.stringify(aReview()) }: Post = {}): string {
  const lines = Object.entries({
    Host: 'admission.example',
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}`);
  return [`POST ${MUTATE_PATH} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

/** What comes back until the text holds, or the connection ends. */
function answersTo(socket: Socket, sent: string | Buffer, isEnough: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (isEnough.test(text)) resolve(text);
    });
    socket.once('close', () => {
      resolve(text);
    });
    socket.write(sent);
  });
}

const STATUS_LINE = /HTTP\/1\.1 \d{3}/;

async function statusOf(sent: string | Buffer): Promise<string | undefined> {
  const text = await answersTo(await open(), sent, STATUS_LINE);
  return STATUS_LINE.exec(text)?.[0].slice(-3);
}

describe('many connections', () => {
  it('500 that say nothing after their handshake', async () => {
    await Promise.all(Array.from({ length: 500 }, () => open()));
    expect(await review()).toMatchObject({ allowed: true });
  });

  it('500 that never begin a handshake', async () => {
    await Promise.all(Array.from({ length: 500 }, () => openPlain()));
    expect(await review()).toMatchObject({ allowed: true });
  });

  it('200 that send headers, or a body, byte by byte', async () => {
    const half = Array.from({ length: 100 }, (_, index) => index);
    const slow = await Promise.all([
      ...half.map(async () => (await open()).write(`POST ${MUTATE_PATH} HTTP/1.1\r\nHost: a`)),
      ...half.map(async () =>
        (await open()).write(post({ headers: { 'Content-Length': '500000' }, body: '{' })),
      ),
    ]);
    expect(slow).toHaveLength(200);
    for (const socket of sockets) socket.write(' ');
    expect(await review()).toMatchObject({ allowed: true });
  });

  it('100 that send a review and do not wait for the answer', async () => {
    for (let index = 0; index < 100; index++) {
      const socket = await open();
      socket.write(post());
      socket.destroy();
    }
  });

  it('50 that end their side before the answer', async () => {
    const texts = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = await open();
        const text = answersTo(socket, '', /"uid"/);
        socket.end(post());
        return text;
      }),
    );
    for (const text of texts) expect(text).toContain('HTTP/1.1 200');
  });
});

describe('one connection', () => {
  it('with ten reviews in one write gets the answers in their order', async () => {
    const uids = Array.from({ length: 10 }, (_, index) => `uid-${index}`);
    const sent = uids.map((uid) => post({ body: JSON.stringify(aReview({ uid })) })).join('');
    const text = await answersTo(await open(), sent, /uid-9"/);
    expect([...text.matchAll(/"uid":"([^"]*)"/g)].map(([, uid]) => uid)).toEqual(uids);
  });

  // Node 20 ends such a connection (its parser's "Paused" over TLS), Node 24 answers all of them.
  it('with 200 reviews in one write is answered or ended, and none of them is logged', async () => {
    const last = post({ body: JSON.stringify(aReview({ uid: 'uid-last' })) });
    const text = await answersTo(await open(), post().repeat(199) + last, /uid-last"/);
    expect(text).toContain('HTTP/1.1 200');
    expect(JSON.stringify(logger.lines)).not.toContain('rawPacket');
    expect(await review()).toMatchObject({ allowed: true });
  });

  it('with a body of 10 MB is told so before it has sent it', async () => {
    expect(
      await statusOf(post({ headers: { 'Content-Length': String(10 * 2 ** 20) }, body: '{' })),
    ).toBe('413');
  });

  it('with a body of 10 MB whose length it does not tell', async () => {
    const chunk = `${(2 ** 20).toString(16)}\r\n${' '.repeat(2 ** 20)}\r\n`;
    const headers = { 'Content-Length': '', 'Transfer-Encoding': 'chunked' };
    const head = post({ headers, body: '' }).replace('Content-Length: \r\n', '');
    expect(await statusOf(head + chunk.repeat(10))).toBe('413');
  });

  it('with a compressed body', async () => {
    const body = gzipSync(Buffer.alloc(50 * 2 ** 20, ' '));
    const headers = { 'Content-Encoding': 'gzip', 'Content-Length': String(body.length) };
    const head = Buffer.from(post({ headers, body: '' }));
    expect(await statusOf(Buffer.concat([head, body]))).toBe('415');
  });

  it.each<[string, string, string]>([
    ['two lengths', post({ headers: { 'Transfer-Encoding': 'chunked' } }), '400'],
    ['a negative length', post({ headers: { 'Content-Length': '-1' } }), '400'],
    ['a length beyond all bounds', post({ headers: { 'Content-Length': '9'.repeat(30) } }), '400'],
    ['headers of 100 kB', post({ headers: { 'X-Large': 'x'.repeat(100_000) } }), '431'],
    ['no HTTP', 'HELO admission\r\n\r\n', '400'],
    ['no host', `POST ${MUTATE_PATH} HTTP/1.1\r\n\r\n`, '400'],
    ['an expectation', post({ headers: { Expect: 'the unexpected' } }), '417'],
    ['an upgrade', post({ headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }), '200'],
    ['a path that leaves', post().replace(MUTATE_PATH, '/../../etc/passwd'), '404'],
    ['a path that is none', post().replace(MUTATE_PATH, '/%ff%'), '404'],
    ['a whole URL, which goes nowhere else', post().replace(' /', ' http://elsewhere/'), '200'],
  ])('with %s gets a clear answer', async (_what, sent, status) => {
    expect(await statusOf(sent)).toBe(status);
  });

  it('that wants a tunnel is closed', async () => {
    expect(await statusOf('CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere\r\n\r\n')).toBe(
      undefined,
    );
  });

  it('that waits to be told to go on is told so', async () => {
    const body = JSON.stringify(aReview());
    const headers = { Expect: '100-continue', 'Content-Length': String(body.length) };
    const socket = await open();
    const text = await answersTo(socket, post({ headers, body: '' }), STATUS_LINE);
    expect(text).toContain('100 Continue');
    expect(await answersTo(socket, body, /"uid"/)).toContain('HTTP/1.1 200');
  });
});

describe('a handshake', () => {
  it('for another name gets our certificate, and the client has to judge it', async () => {
    const refused = open({ servername: 'elsewhere.example' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    const socket = await open({ servername: 'elsewhere.example', rejectUnauthorized: false });
    expect(await answersTo(socket, post(), /"uid"/)).toContain('HTTP/1.1 200');
  });

  it('of TLS 1.1 is refused', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    await expect(open(old)).rejects.toThrow(/alert protocol version/);
  });

  it('that is plain HTTP is refused', async () => {
    const socket = await openPlain();
    const text = await answersTo(socket, post(), STATUS_LINE);
    expect(text).not.toContain('200');
  });
});
