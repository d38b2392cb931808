/** The certificate that the webhooks are served with, read from PEM that nobody has checked. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export interface ServingCertificate {
  /** PEM, with the certificates between it and its CA where there are any. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  /** Epoch milliseconds. */
  readonly notBefore: number;
  /** Epoch milliseconds. */
  readonly notAfter: number;
  readonly x509: X509Certificate;
}

/** A text, and what to call it in messages. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** A certificate or key that cannot be used; the message names it and says what is wrong. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

/**
 * Does not look at the time.
 *
 * @throws CertificateError
 */
export function readServingCertificate(certificate: NamedText, key: NamedText): ServingCertificate {
  const x509 = parseCertificate(certificate);
  const notBefore = Date.parse(x509.validFrom);
  const notAfter = Date.parse(x509.validTo);
  if (Number.isNaN(notBefore) || Number.isNaN(notAfter)) {
    throw new CertificateError(`${certificate.name} has no readable time of validity`);
  }
  if (!belongTogether(x509, parseKey(key))) {
    throw new CertificateError(`${key.name} is not the key of ${certificate.name}`);
  }
  return { certificate: certificate.text, key: key.text, notBefore, notAfter, x509 };
}

/**
 * As `readServingCertificate`, for a certificate that is to be served now.
 *
 * @throws CertificateError
 */
export function readCurrentCertificate(
  certificate: NamedText,
  key: NamedText,
  now: number,
): ServingCertificate {
  const read = readServingCertificate(certificate, key);
  if (now > read.notAfter) {
    throw new CertificateError(`${certificate.name} has expired: ${read.x509.validTo}`);
  }
  if (now < read.notBefore) {
    throw new CertificateError(`${certificate.name} is not valid before ${read.x509.validFrom}`);
  }
  return read;
}

function parseCertificate({ name, text }: NamedText): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new CertificateError(`${name} must be a certificate in PEM`);
  }
}

function parseKey({ name, text }: NamedText): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new CertificateError(`${name} must be a private key in PEM, without a passphrase`);
  }
}

/** False, too, for a certificate whose public key OpenSSL cannot read. */
export function belongTogether(certificate: X509Certificate, key: KeyObject): boolean {
  try {
    return certificate.checkPrivateKey(key);
  } catch {
    return false;
  }
}
