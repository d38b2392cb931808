import { X509Certificate, createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CertificateError, loadOrCreateCertificate } from '../../../src/admission/certificate';
import type { ServingCertificate } from '../../../src/admission/certificate';
import { makeSelfSignedCertificate } from '../../../src/admission/selfSignedCertificate';
import { ManualClock } from '../../support/manualClock';

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

function load(dnsNames: readonly string[] = []): Promise<ServingCertificate> {
  return loadOrCreateCertificate({ directory, dnsNames, clock });
}

async function provide(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
}

describe('a folder without a certificate', () => {
  it('gets the CA of a new one, and no key', async () => {
    const { origin, certificate, key } = await load();
    expect(origin).toBe('SelfSigned');
    expect(await readdir(directory)).toEqual(['ca.crt']);
    const ca = new X509Certificate(await readFile(join(directory, 'ca.crt')));
    const leaf = new X509Certificate(certificate);
    expect(ca.ca).toBe(true);
    expect(ca.verify(ca.publicKey)).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkIssued(ca)).toBe(true);
    expect(leaf.verify(ca.publicKey)).toBe(true);
    expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
  });

  it('is made if it is not there', async () => {
    const deeper = join(directory, 'a', 'b');
    await loadOrCreateCertificate({ directory: deeper, dnsNames: [], clock });
    expect(await readdir(deeper)).toEqual(['ca.crt']);
  });

  it('gets a new CA at each start, and an older one is replaced', async () => {
    await load();
    const first = await readFile(join(directory, 'ca.crt'), 'utf8');
    await load();
    expect(await readFile(join(directory, 'ca.crt'), 'utf8')).not.toBe(first);
  });

  it('that cannot be written is an error that names the file', async () => {
    await provide({ file: '' });
    const inFile = join(directory, 'file', 'certificates');
    await expect(
      loadOrCreateCertificate({ directory: inFile, dnsNames: [], clock }),
    ).rejects.toThrow(CertificateError);
    await expect(
      loadOrCreateCertificate({ directory: inFile, dnsNames: [], clock }),
    ).rejects.toThrow(inFile);
  });
});

describe('a certificate that is made', () => {
  it('is for the machine itself and for the names that were asked for', async () => {
    const { certificate } = await load(['webhook.boost.svc', '10.0.0.7', 'localhost']);
    const leaf = new X509Certificate(certificate);
    expect(leaf.subjectAltName).toBe(
      'DNS:localhost, IP Address:127.0.0.1, DNS:webhook.boost.svc, IP Address:10.0.0.7',
    );
    expect(leaf.checkHost('webhook.boost.svc')).toBe('webhook.boost.svc');
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(leaf.checkHost('example.com')).toBeUndefined();
  });

  it('is valid from an hour ago, for clocks that are behind, and for a year', async () => {
    const { certificate, notAfter } = await load();
    const leaf = new X509Certificate(certificate);
    expect(Date.parse(leaf.validFrom)).toBe(clock.now() - 3_600_000);
    expect(Date.parse(leaf.validTo)).toBe(clock.now() + 365 * DAY_MS);
    expect(notAfter).toBe(clock.now() + 365 * DAY_MS);
  });

  it('never has the serial number of another: clients tell certificates of one CA name by it', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => makeNow()));
    const serials = made.flatMap(({ ca, certificate }) => [
      new X509Certificate(ca).serialNumber,
      new X509Certificate(certificate).serialNumber,
    ]);
    expect(new Set(serials).size).toBe(40);
    // Positive, and of the same length, as no leading byte is lost.
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9A-F]{31}$/);
  });
});

describe('a certificate that is provided', () => {
  it('is served as it is, and nothing is written', async () => {
    const { certificate, key } = await makeNow();
    await provide({ 'tls.crt': certificate, 'tls.key': key });
    expect(await load()).toEqual({
      origin: 'Provided',
      certificate,
      key,
      notAfter: clock.now() + 365 * DAY_MS,
    });
    expect(await readdir(directory)).toEqual(['tls.crt', 'tls.key']);
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
    await expectRefusal({ 'tls.crt': certificate }, 'tls.key', 'is missing beside');
  });

  it('cannot be only a key', async () => {
    const { key } = await makeNow();
    await expectRefusal({ 'tls.key': key }, 'tls.crt', 'is missing beside');
  });

  it('must belong to the key', async () => {
    const [{ certificate }, { key }] = await Promise.all([makeNow(), makeNow()]);
    await expectRefusal({ 'tls.crt': certificate, 'tls.key': key }, 'tls.key', 'is not the key of');
  });

  it('must not have expired', async () => {
    const { certificate, key } = await makeAt(clock.now() - 366 * DAY_MS);
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
    await expect(
      loadOrCreateCertificate({ directory: inFile, dnsNames: [], clock }),
    ).rejects.toThrow(`${join(inFile, 'tls.crt')} cannot be read: `);
  });
});

function makeAt(now: number) {
  return makeSelfSignedCertificate({ dnsNames: [], now });
}

function makeNow() {
  return makeAt(clock.now());
}
