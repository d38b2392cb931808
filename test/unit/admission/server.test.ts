/** The HTTPS server over real sockets of the loopback interface. */
import type { RequestListener } from 'node:http';
import { Agent, request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startAdmissionServer } from '../../../src/admission/server';
import type { AdmissionServer } from '../../../src/admission/server';
import { aCertificate, readable } from '../../support/certificates';
import type { TestCertificate } from '../../support/certificates';
import { ManualClock, settled } from '../../support/manualClock';
import { RecordingLogger } from '../../support/recordingLogger';

const HOST = '127.0.0.1';
const DRAIN_MS = 5_000;

let made: TestCertificate;
let another: TestCertificate;
beforeAll(async () => {
  [made, another] = await Promise.all([aCertificate(), aCertificate()]);
});

let clock: ManualClock;
let logger: RecordingLogger;
let server: AdmissionServer;
let agent: Agent;
/** Answers of `/held`, to be sent when the test wants it. */
let held: (() => void)[];
let sockets: Socket[];

const handle: RequestListener = (incoming, response) => {
  if (incoming.url === '/held') held.push(() => response.end('held'));
  else response.end('ok');
};

beforeEach(async () => {
  clock = new ManualClock();
  logger = new RecordingLogger();
  held = [];
  sockets = [];
  agent = new Agent({ keepAlive: true, ca: made.ca });
  server = await startAdmissionServer({
    handle,
    address: { host: HOST, port: 0 },
    logger,
    clock,
  });
  server.replaceCertificate(readable(made));
  await waitFor(() => server.problem() === undefined);
});

afterEach(async () => {
  agent.destroy();
  for (const socket of sockets) socket.destroy();
  for (const answer of held) answer();
  await drained(server.drain(0));
});

interface Answer {
  readonly text: string;
  readonly connection: string | undefined;
  readonly keepAlive: unknown;
  /** Whether it came over a connection that was open already. */
  readonly isReused: boolean;
}

function get(path = '/'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: HOST, port: server.port, path, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += String(chunk)));
      response.on('error', reject).on('end', () => {
        const { connection, 'keep-alive': keepAlive } = response.headers;
        resolve({ text, connection, keepAlive, isReused: outgoing.reusedSocket });
      });
    });
    outgoing.on('error', reject).end();
  });
}

function handshake(options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: HOST, port: server.port, ca: made.ca, ...options }, () => {
      resolve(socket);
    });
    socket.once('error', reject);
    sockets.push(socket);
  });
}

/** A connection that says nothing, not even hello. */
async function openSilent(port = server.port): Promise<Socket> {
  const socket = connectPlain(port, HOST);
  sockets.push(socket);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

/** The other side of a socket acts a few turns of the event loop later. */
async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await settled();
}

/** Lets the clock run until the server is done. */
async function drained(end: Promise<void>): Promise<void> {
  const state = { isOver: false };
  void end.then(() => (state.isOver = true));
  while (!state.isOver) await clock.advance(1_000);
}

describe('a server without a certificate', () => {
  it('listens and is not ready: it fails every handshake until there is one', async () => {
    const other = await startAdmissionServer({
      handle,
      address: { host: HOST, port: 0 },
      logger,
      clock,
    });
    try {
      expect(other.problem()).toBe('no certificate yet');
      await expect(handshake({ port: other.port })).rejects.toThrow();
      expect(other.problem()).toBe('no certificate yet');

      other.replaceCertificate(readable(made));

      await waitFor(() => other.problem() === undefined);
      expect((await handshake({ port: other.port })).authorized).toBe(true);
    } finally {
      await drained(other.drain(0));
    }
  });
});

describe('a server that has started', () => {
  it('is ready, and keeps connections for longer than the API server does', async () => {
    expect(server.problem()).toBeUndefined();
    expect(await get()).toEqual({
      text: 'ok',
      connection: 'keep-alive',
      keepAlive: 'timeout=95',
      isReused: false,
    });
    expect(await get()).toMatchObject({ isReused: true });
  });

  it('serves the certificate to whoever trusts its CA', async () => {
    const socket = await handshake();
    expect(socket.authorized).toBe(true);
    expect(socket.getProtocol()).toBe('TLSv1.3');
  });

  it('speaks TLS 1.2, and nothing older', async () => {
    const socket = await handshake({ maxVersion: 'TLSv1.2' });
    expect(socket.getProtocol()).toBe('TLSv1.2');
    // Without the ciphers this client would not even ask.
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    await expect(handshake(old)).rejects.toThrow(/alert protocol version/);
  });

  it('says so where its port is taken', async () => {
    const second = startAdmissionServer({
      handle,
      address: { host: HOST, port: server.port },
      logger,
      clock,
    });
    await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('clients that are no API server', () => {
  it('do no harm by not trusting the certificate', async () => {
    await expect(handshake({ ca: another.ca })).rejects.toThrow();
    expect(await get()).toMatchObject({ text: 'ok' });
  });

  it('do no harm with plain HTTP, noise, or half a handshake', async () => {
    for (const noise of [
      'GET / HTTP/1.1\r\n\r\n',
      '\u0016\u0003\u0001\u0000',
      '\u0000'.repeat(50),
    ]) {
      const socket = await openSilent();
      socket.on('error', () => undefined);
      socket.end(noise);
      await new Promise((resolve) => socket.once('close', resolve).resume());
    }
    expect(await get()).toMatchObject({ text: 'ok' });
    expect(logger.lines.filter(({ level }) => level !== 'debug')).toEqual([]);
  });

  it('do no harm by ending their side of the connection early', async () => {
    const socket = await handshake();
    socket.end('GET /held HTTP/1.1\r\nHost: webhook\r\n\r\n');
    await waitFor(() => held.length === 1);
    for (const answer of held) answer();
    await new Promise((resolve) => socket.once('close', resolve).resume());
    expect(await get()).toMatchObject({ text: 'ok' });
  });
});

describe('a new certificate', () => {
  it('is for new connections, and those that are open go on', async () => {
    await get();
    server.replaceCertificate(readable(another));
    expect(await get()).toMatchObject({ isReused: true });
    const socket = await handshake({ ca: another.ca });
    expect(socket.authorized).toBe(true);
    await expect(handshake({ ca: made.ca })).rejects.toThrow();
  });

  it('changes nothing about the oldest TLS version', async () => {
    server.replaceCertificate(readable(another));
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    await expect(handshake({ ca: another.ca, ...old })).rejects.toThrow(/alert protocol version/);
  });
});

describe('a server that shuts down', () => {
  it('is not ready at once, but answers on open and on new connections until the drain time is over', async () => {
    await get();
    const { port } = server;
    const end = server.drain(DRAIN_MS);
    expect(server.problem()).toBe('shutting down');
    await clock.advance(DRAIN_MS - 1);
    expect(await get()).toMatchObject({ text: 'ok', connection: 'close', isReused: true });
    expect(await get()).toMatchObject({ text: 'ok', connection: 'close', isReused: false });
    await clock.advance(1);
    await end;
    await expect(openSilent(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('ends connections without a request only then', async () => {
    const idle = await handshake();
    const silent = await openSilent();
    let ended = 0;
    for (const socket of [idle, silent]) socket.once('close', () => (ended += 1)).resume();
    const end = server.drain(DRAIN_MS);
    await clock.advance(DRAIN_MS - 1);
    expect(await get()).toMatchObject({ text: 'ok' });
    expect(ended).toBe(0);
    await clock.advance(1);
    await end;
    await waitFor(() => ended === 2);
  });

  it('finishes what is in flight', async () => {
    const answer = get('/held');
    await waitFor(() => held.length === 1);
    const end = server.drain(DRAIN_MS);
    await clock.advance(DRAIN_MS + 1_000);
    for (const send of held) send();
    expect(await answer).toMatchObject({ text: 'held', connection: 'close' });
    await end;
  });

  it('does not wait for ever', async () => {
    const answer = get('/held');
    const failed = expect(answer).rejects.toMatchObject({ code: 'ECONNRESET' });
    await waitFor(() => held.length === 1);
    await drained(server.drain(DRAIN_MS));
    await failed;
  });
});
