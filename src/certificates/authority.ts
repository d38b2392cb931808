/** Certificate authorities (CAs), read from PEM that nobody has checked. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { belongTogether } from './servingCertificate';

export interface AuthorityCertificate {
  /** PEM of this one certificate. */
  readonly pem: string;
  /** SHA-256, in hexadecimal: what tells authorities apart. */
  readonly fingerprint: string;
  /** Epoch milliseconds. */
  readonly notBefore: number;
  /** Epoch milliseconds. */
  readonly notAfter: number;
  readonly x509: X509Certificate;
}

/** One that can sign. */
export interface Authority {
  readonly certificate: AuthorityCertificate;
  /** PEM (PKCS #8). */
  readonly key: string;
}

/** Two are in use while one replaces the other; whoever fills a bundle with thousands is no friend. */
const MAX_READ = 16;

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The first authorities of a PEM bundle, each once; what else stands there is left out. */
export function readAuthorityCertificates(text: string): readonly AuthorityCertificate[] {
  const byFingerprint = new Map<string, AuthorityCertificate>();
  for (const [pem] of text.matchAll(PEM_CERTIFICATE)) {
    const certificate = readAuthorityCertificate(pem);
    if (certificate !== undefined) byFingerprint.set(certificate.fingerprint, certificate);
    if (byFingerprint.size === MAX_READ) break;
  }
  return [...byFingerprint.values()];
}

/** Undefined where the certificate is no CA's, or the key is not its own or cannot sign for us. */
export function readAuthority(certificate: string, key: string): Authority | undefined {
  const read = readAuthorityCertificate(certificate);
  const privateKey = parseSigningKey(key);
  if (read === undefined || privateKey === undefined) return undefined;
  return belongTogether(read.x509, privateKey) ? { certificate: read, key } : undefined;
}

export function hasSigned(authority: AuthorityCertificate, certificate: X509Certificate): boolean {
  try {
    return certificate.checkIssued(authority.x509) && certificate.verify(authority.x509.publicKey);
  } catch {
    // Such as a kind of key that OpenSSL does not know.
    return false;
  }
}

export function isSame(a: AuthorityCertificate, b: AuthorityCertificate): boolean {
  return a.fingerprint === b.fingerprint;
}

function readAuthorityCertificate(text: string): AuthorityCertificate | undefined {
  try {
    const x509 = new X509Certificate(text);
    const notBefore = Date.parse(x509.validFrom);
    const notAfter = Date.parse(x509.validTo);
    if (!x509.ca || !x509.verify(x509.publicKey)) return undefined;
    if (Number.isNaN(notBefore) || Number.isNaN(notAfter)) return undefined;
    const pem = x509.toString();
    return { pem, fingerprint: x509.fingerprint256, notBefore, notAfter, x509 };
  } catch {
    return undefined;
  }
}

/** Only what the issuer makes: it could not sign with anything else. */
function parseSigningKey(text: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(text);
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    return undefined;
  }
}
