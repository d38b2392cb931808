/** The certificate that the webhooks are served with: provided as files, or made at the start. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../boost-engine';
import type { Clock } from '../kube';
import { makeSelfSignedCertificate } from './selfSignedCertificate';

export interface ServingCertificate {
  readonly origin: 'Provided' | 'SelfSigned';
  /** PEM, with the certificates between it and its CA where there are any. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  /** Epoch milliseconds. */
  readonly notAfter: number;
}

export interface CertificateOptions {
  readonly directory: string;
  /** For a certificate that is made here. */
  readonly dnsNames: readonly string[];
  readonly clock: Clock;
}

/** A file of the certificate folder that cannot be used; the message names it and says what is wrong. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

/**
 * Takes `tls.crt` and `tls.key` of the folder. Where neither is there, a certificate and its CA are
 * made, and the CA's certificate is written to `ca.crt` for the webhook configurations; keys are
 * never written.
 *
 * @throws CertificateError
 */
export async function loadOrCreateCertificate(
  options: CertificateOptions,
): Promise<ServingCertificate> {
  const certificateFile = join(options.directory, 'tls.crt');
  const keyFile = join(options.directory, 'tls.key');
  const [certificate, key] = await Promise.all([readText(certificateFile), readText(keyFile)]);
  if (certificate === undefined && key === undefined) return createCertificate(options);
  if (certificate === undefined) throw missing(certificateFile, keyFile);
  if (key === undefined) throw missing(keyFile, certificateFile);
  const now = options.clock.now();
  return provided({ file: certificateFile, text: certificate }, { file: keyFile, text: key }, now);
}

interface TextFile {
  readonly file: string;
  readonly text: string;
}

function provided(certificate: TextFile, key: TextFile, now: number): ServingCertificate {
  const parsed = parseCertificate(certificate);
  const notBefore = Date.parse(parsed.validFrom);
  const notAfter = Date.parse(parsed.validTo);
  if (now > notAfter) {
    throw new CertificateError(`${certificate.file} has expired: ${parsed.validTo}`);
  }
  if (now < notBefore) {
    throw new CertificateError(`${certificate.file} is not valid before ${parsed.validFrom}`);
  }
  if (!parsed.checkPrivateKey(parseKey(key))) {
    throw new CertificateError(`${key.file} is not the key of ${certificate.file}`);
  }
  return { origin: 'Provided', certificate: certificate.text, key: key.text, notAfter };
}

function parseCertificate({ file, text }: TextFile): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new CertificateError(`${file} must be a certificate in PEM`);
  }
}

function parseKey({ file, text }: TextFile): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new CertificateError(`${file} must be a private key in PEM, without a passphrase`);
  }
}

async function createCertificate({
  directory,
  dnsNames,
  clock,
}: CertificateOptions): Promise<ServingCertificate> {
  const { ca, certificate, key } = await makeSelfSignedCertificate({ dnsNames, now: clock.now() });
  await writeWhole(directory, 'ca.crt', ca);
  const notAfter = Date.parse(new X509Certificate(certificate).validTo);
  return { origin: 'SelfSigned', certificate, key, notAfter };
}

/** Whoever waits for the file reads all of it or nothing. */
async function writeWhole(directory: string, name: string, text: string): Promise<void> {
  const file = join(directory, name);
  const unfinished = `${file}.${process.pid}`;
  try {
    await mkdir(directory, { recursive: true });
    await writeFile(unfinished, text, { mode: 0o644 });
    await rename(unfinished, file);
  } catch (error) {
    throw new CertificateError(`${file} cannot be written: ${messageOf(error)}`);
  }
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isObject(error) && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CertificateError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

function missing(file: string, other: string): CertificateError {
  return new CertificateError(`${file} is missing beside ${other}: provide both, or neither`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
