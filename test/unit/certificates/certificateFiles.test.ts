/** Certificates that somebody provides as files, and replaces while they are served. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CertificateError, CertificateFiles } from '../../../src/certificates';
import { READ_EVERY_MS, readCertificateFiles } from '../../../src/certificates/certificateFiles';
import type { ServingCertificate } from '../../../src/certificates';
import { aCertificate, writeCertificateFiles } from '../../support/certificates';
import type { TestCertificate } from '../../support/certificates';
import { eventually } from '../../support/eventually';
import { ManualClock } from '../../support/manualClock';
import { RecordingLogger } from '../../support/recordingLogger';

const DAY_MS = 24 * 3_600_000;

let directory: string;
let clock: ManualClock;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'certificates-'));
  clock = new ManualClock();
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

function load(): Promise<ServingCertificate> {
  return readCertificateFiles(directory, clock.now());
}

async function provide(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
}

describe('a certificate that is provided', () => {
  it('is taken as it is', async () => {
    const { certificate, key } = await makeNow();
    await provide({ 'tls.crt': certificate, 'tls.key': key });
    expect(await load()).toMatchObject({ certificate, key, notAfter: clock.now() + DAY_MS });
  });

  it('may come with the certificates between it and its CA', async () => {
    const { certificate, key, ca } = await makeNow();
    await provide({ 'tls.crt': certificate + ca, 'tls.key': key });
    expect((await load()).certificate).toBe(certificate + ca);
  });

  async function expectRefusal(
    files: Readonly<Record<string, string>>,
    file: string,
    why: string,
  ): Promise<void> {
    await provide(files);
    const refusal = load();
    await expect(refusal).rejects.toThrow(CertificateError);
    await expect(refusal).rejects.toThrow(`${join(directory, file)} ${why}`);
  }

  it('needs its key', async () => {
    const { certificate } = await makeNow();
    await expectRefusal({ 'tls.crt': certificate }, 'tls.key', 'is missing');
  });

  it('cannot be only a key', async () => {
    const { key } = await makeNow();
    await expectRefusal({ 'tls.key': key }, 'tls.crt', 'is missing');
  });

  it('must belong to the key', async () => {
    const [{ certificate }, { key }] = await Promise.all([makeNow(), makeNow()]);
    await expectRefusal({ 'tls.crt': certificate, 'tls.key': key }, 'tls.key', 'is not the key of');
  });

  it('must not have expired', async () => {
    const { certificate, key } = await makeAt(clock.now() - 2 * DAY_MS);
    await expectRefusal({ 'tls.crt': certificate, 'tls.key': key }, 'tls.crt', 'has expired');
  });

  it('must be valid already', async () => {
    const { certificate, key } = await makeAt(clock.now() + DAY_MS);
    const why = 'is not valid before';
    await expectRefusal({ 'tls.crt': certificate, 'tls.key': key }, 'tls.crt', why);
  });

  it.each(['', 'no certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'])(
    'must be a certificate: %j',
    async (text) => {
      const { key } = await makeNow();
      const why = 'must be a certificate in PEM';
      await expectRefusal({ 'tls.crt': text, 'tls.key': key }, 'tls.crt', why);
    },
  );

  it('must come with a key that can be read', async () => {
    const { certificate } = await makeNow();
    const { privateKey } = generateKeyPairSync('ec', {
      namedCurve: 'prime256v1',
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: {
        type: 'pkcs8',
        format: 'pem',
        cipher: 'aes-256-cbc',
        passphrase: 'secret',
      },
    });
    const why = 'must be a private key in PEM, without a passphrase';
    await expectRefusal({ 'tls.crt': certificate, 'tls.key': privateKey }, 'tls.key', why);
  });

  it('must be readable', async () => {
    await provide({ 'tls.crt': 'x' });
    const inFile = join(directory, 'tls.crt');
    await expect(readCertificateFiles(inFile, clock.now())).rejects.toThrow(
      `${join(inFile, 'tls.crt')} cannot be read: `,
    );
  });
});

describe('files that are provided', () => {
  let logger: RecordingLogger;
  let given: string[];
  let files: CertificateFiles;

  beforeEach(() => {
    logger = new RecordingLogger();
    given = [];
    files = new CertificateFiles({ directory, clock, logger });
  });

  afterEach(async () => {
    await files.stop();
  });

  function start(): Promise<void> {
    return files.start(({ certificate }) => given.push(certificate));
  }

  /** Lets the source look again until it has seen what the test has done. */
  function untilSeen(check: () => void): Promise<void> {
    return eventually(async () => {
      await clock.advance(READ_EVERY_MS);
      check();
    });
  }

  it('are given at the start, and again only when they have changed', async () => {
    const [first, second] = await Promise.all([makeNow(), makeNow()]);
    await writeCertificateFiles(directory, first);
    await start();
    expect(files.problem()).toBeUndefined();
    expect(given).toEqual([first.certificate]);

    await writeCertificateFiles(directory, second);
    await untilSeen(() => {
      expect(given).toEqual([first.certificate, second.certificate]);
    });
    expect(logger.lines).toEqual([]);
  });

  it('are taken over when the kubelet swaps the folder behind a symbolic link', async () => {
    const [first, second] = await Promise.all([makeNow(), makeNow()]);
    await mount(first, '..1');
    await start();
    await mount(second, '..2');
    await untilSeen(() => {
      expect(given).toEqual([first.certificate, second.certificate]);
    });

    async function mount(certificate: TestCertificate, version: string): Promise<void> {
      await writeCertificateFiles(join(directory, version), certificate);
      await symlink(version, join(directory, '..new'));
      await rename(join(directory, '..new'), join(directory, '..data'));
      for (const name of ['tls.crt', 'tls.key']) {
        await symlink(join('..data', name), join(directory, name)).catch(() => undefined);
      }
    }
  });

  it('may come later: until then it says which file is missing, once', async () => {
    await mkdir(directory, { recursive: true });
    await start();
    await untilSeen(() => undefined);
    expect(files.problem()).toBe(`${join(directory, 'tls.crt')} is missing`);
    expect(logger.lines).toHaveLength(1);

    await writeCertificateFiles(directory, await makeNow());
    await untilSeen(() => {
      expect(files.problem()).toBeUndefined();
    });
    expect(given).toHaveLength(1);
  });

  it('that are broken later are logged, and what is served stays', async () => {
    await writeCertificateFiles(directory, await makeNow());
    await start();
    await provide({ 'tls.crt': 'broken' });
    await untilSeen(() => {
      expect(logger.lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          fields: {
            problem: `${join(directory, 'tls.crt')} must be a certificate in PEM`,
            servesAnother: true,
          },
        }),
      );
    });
    expect(files.problem()).toBeUndefined();
    expect(given).toHaveLength(1);
  });
});

function makeAt(now: number): Promise<TestCertificate> {
  return aCertificate({ now });
}

function makeNow(): Promise<TestCertificate> {
  return makeAt(clock.now());
}
