import { X509Certificate, createPrivateKey } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { issueAuthority, issueLeaf } from '../../../src/certificates';
import type { IssuedCertificate } from '../../../src/certificates';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;

let authority: IssuedCertificate;

beforeAll(async () => {
  authority = await issueAuthority({ now: NOW, lifetimeMs: 10 * HOUR_MS });
});

function leafOf(names: readonly string[]): Promise<IssuedCertificate> {
  return issueLeaf({ authority, names, now: NOW, notAfter: NOW + 5 * HOUR_MS });
}

describe('an authority', () => {
  it('signs itself, may sign servers and no further authorities', () => {
    const ca = new X509Certificate(authority.certificate);
    expect(ca.ca).toBe(true);
    expect(ca.verify(ca.publicKey)).toBe(true);
    expect(ca.checkPrivateKey(createPrivateKey(authority.key))).toBe(true);
    expect(ca.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
  });

  it('is valid from an hour ago, for clocks that are behind', () => {
    const ca = new X509Certificate(authority.certificate);
    expect(Date.parse(ca.validFrom)).toBe(NOW - HOUR_MS);
    expect(Date.parse(ca.validTo)).toBe(NOW + 10 * HOUR_MS);
  });
});

describe('a serving certificate', () => {
  it('is signed by the authority whose key was stored as text, and has a key of its own', async () => {
    const { certificate, key } = await leafOf(['a.example']);
    const ca = new X509Certificate(authority.certificate);
    const leaf = new X509Certificate(certificate);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkIssued(ca)).toBe(true);
    expect(leaf.verify(ca.publicKey)).toBe(true);
    expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
  });

  it('is for the names and addresses that were asked for, each once', async () => {
    const { certificate } = await leafOf(['webhook.boost.svc', '10.0.0.7', 'webhook.boost.svc']);
    const leaf = new X509Certificate(certificate);
    expect(leaf.subjectAltName).toBe('DNS:webhook.boost.svc, IP Address:10.0.0.7');
    expect(leaf.checkHost('webhook.boost.svc')).toBe('webhook.boost.svc');
    expect(leaf.checkIP('10.0.0.7')).toBe('10.0.0.7');
    expect(leaf.checkHost('example.com')).toBeUndefined();
  });

  it('is valid from an hour ago until the time that was asked for', async () => {
    const leaf = new X509Certificate((await leafOf(['a.example'])).certificate);
    expect(Date.parse(leaf.validFrom)).toBe(NOW - HOUR_MS);
    expect(Date.parse(leaf.validTo)).toBe(NOW + 5 * HOUR_MS);
  });

  it('never has the serial number of another: clients tell certificates of one CA name by it', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => leafOf(['a.example'])));
    const serials = made.map(({ certificate }) => new X509Certificate(certificate).serialNumber);
    expect(new Set(serials).size).toBe(20);
    // Positive, and of the same length, as no leading byte is lost.
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9A-F]{31}$/);
  });

  it('is not made with a key that the issuer cannot use', async () => {
    const broken = { ...authority, key: 'no key' };
    await expect(
      issueLeaf({ authority: broken, names: ['a'], now: NOW, notAfter: NOW + HOUR_MS }),
    ).rejects.toThrow();
  });
});
