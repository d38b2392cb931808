/** Makes a CA and a serving certificate that it signs, for a server that nobody gave one. */
// The library's dependency injection needs it, and needs it first.
import 'reflect-metadata';
import { KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface SelfSignedCertificate {
  /** PEM of the CA's certificate; its key is gone. */
  readonly ca: string;
  /** PEM of the serving certificate. */
  readonly certificate: string;
  /** PEM (PKCS #8) of its key. */
  readonly key: string;
}

export interface SelfSignedOptions {
  /** DNS names and IP addresses beside `localhost` and `127.0.0.1`. */
  readonly dnsNames: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The clock of an API server may be behind ours. */
const BACKDATED_MS = 3_600_000;
const LIFETIME_MS = 365 * 24 * 3_600_000;

export async function makeSelfSignedCertificate({
  dnsNames,
  now,
}: SelfSignedOptions): Promise<SelfSignedCertificate> {
  const [caKeys, keys] = await Promise.all([generateKeys(), generateKeys()]);
  const validity = {
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + LIFETIME_MS),
  };
  const ca = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=startup-cpu-boost CA',
    serialNumber: serialNumber(),
    ...validity,
    keys: caKeys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      // It signs servers, no further CAs.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  });
  const leaf = await X509CertificateGenerator.create({
    subject: 'CN=startup-cpu-boost',
    issuer: ca.subject,
    serialNumber: serialNumber(),
    ...validity,
    publicKey: keys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(alternativeNames(dnsNames)),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(ca),
    ],
  });
  return {
    ca: `${ca.toString('pem')}\n`,
    certificate: `${leaf.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

/** RFC 5280, 4.1.2.2: positive, at most 20 bytes; a first bit of 0 keeps it positive. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

function alternativeNames(dnsNames: readonly string[]) {
  const names = new Set(['localhost', '127.0.0.1', ...dnsNames]);
  return [...names].map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const);
}
