/** One serving certificate for all admission replicas, as a Secret mounted into each of them is. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeSelfSignedCertificate } from '../../src/admission/selfSignedCertificate';

export interface ServingFolder {
  /** For CERT_DIR. */
  readonly directory: string;
  /** PEM of the CA, for the webhook configurations. */
  readonly caBundle: string;
}

/** Writes `tls.crt` and `tls.key`, valid for 127.0.0.1, into the folder. */
export async function writeServingCertificate(directory: string): Promise<ServingFolder> {
  const { ca, certificate, key } = await makeSelfSignedCertificate({
    dnsNames: [],
    now: Date.now(),
  });
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'tls.crt'), certificate);
  await writeFile(join(directory, 'tls.key'), key, { mode: 0o600 });
  return { directory, caBundle: ca };
}
