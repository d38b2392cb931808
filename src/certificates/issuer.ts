/** Makes certificates: authorities (CAs), and the serving certificates that they sign. */
// The library's dependency injection needs it, and needs it first.
import 'reflect-metadata';
import { KeyObject, createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
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
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM (PKCS #8) of its key. */
  readonly key: string;
}

export interface AuthorityRequest {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly lifetimeMs: number;
}

export interface LeafRequest {
  readonly authority: IssuedCertificate;
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** Epoch milliseconds; X.509 has whole seconds, what is above them is lost. */
  readonly notAfter: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The clock of an API server may be behind ours. */
export const BACKDATED_MS = 3_600_000;

/** An authority of its own, with a key of its own. */
export async function issueAuthority({
  now,
  lifetimeMs,
}: AuthorityRequest): Promise<IssuedCertificate> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=startup-cpu-boost CA',
    serialNumber: serialNumber(),
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + lifetimeMs),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      // It signs servers, no further CAs.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return issued(certificate, keys);
}

/** A serving certificate with a key of its own; rejects where the authority's key is not ECDSA P-256. */
export async function issueLeaf(request: LeafRequest): Promise<IssuedCertificate> {
  const { authority, names, now, notAfter } = request;
  const keys = await generateKeys();
  const ca = new X509Certificate(authority.certificate);
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=startup-cpu-boost',
    issuer: ca.subject,
    serialNumber: serialNumber(),
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(notAfter),
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(alternativeNames(names)),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(ca),
    ],
  });
  return issued(certificate, keys);
}

function issued(
  certificate: X509Certificate,
  { privateKey }: webcrypto.CryptoKeyPair,
): IssuedCertificate {
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

/** RFC 5280, 4.1.2.2: positive, at most 20 bytes; a first bit of 0 keeps it positive. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

function alternativeNames(names: readonly string[]) {
  return [...new Set(names)].map(
    (value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const,
  );
}
