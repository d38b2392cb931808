/** Certificates for tests that only need a server that can be trusted. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { issueAuthority, issueLeaf, readServingCertificate } from '../../src/certificates';
import type {
  CertificateSource,
  IssuedCertificate,
  ServingCertificate,
} from '../../src/certificates';

export interface TestCertificate extends IssuedCertificate {
  /** PEM of the CA that signed it. */
  readonly ca: string;
}

export interface TestCertificateOptions {
  /** Beside `localhost` and `127.0.0.1`. */
  readonly names?: readonly string[];
  /** Epoch milliseconds; the machine's time unless given. */
  readonly now?: number;
}

const DAY_MS = 86_400_000;

/** Of a CA of its own, valid for a day. */
export async function aCertificate({
  names = [],
  now = Date.now(),
}: TestCertificateOptions = {}): Promise<TestCertificate> {
  const authority = await issueAuthority({ now, lifetimeMs: DAY_MS });
  const leaf = await issueLeaf({
    authority,
    names: ['localhost', '127.0.0.1', ...names],
    now,
    notAfter: now + DAY_MS,
  });
  return { ...leaf, ca: authority.certificate };
}

export function readable({ certificate, key }: IssuedCertificate): ServingCertificate {
  return readServingCertificate(
    { name: 'tls.crt', text: certificate },
    { name: 'tls.key', text: key },
  );
}

/** A source that gives this one and no other. */
export function always(certificate: IssuedCertificate): CertificateSource {
  return {
    start: (give) => {
      give(readable(certificate));
      return Promise.resolve();
    },
    problem: () => undefined,
    liveChecks: [],
    stop: () => Promise.resolve(),
  };
}

/** As a Secret is mounted. */
export async function writeCertificateFiles(
  directory: string,
  { certificate, key }: IssuedCertificate,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'tls.crt'), certificate);
  await writeFile(join(directory, 'tls.key'), key, { mode: 0o600 });
}
