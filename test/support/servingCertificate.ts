/** One serving certificate for all admission replicas, as a Secret mounted into each of them is. */
import { aCertificate, writeCertificateFiles } from './certificates';

export interface ServingFolder {
  /** For CERT_DIR. */
  readonly directory: string;
  /** PEM of the CA, for the webhook configurations. */
  readonly caBundle: string;
}

/** Writes `tls.crt` and `tls.key`, valid for 127.0.0.1, into the folder. */
export async function writeServingCertificate(directory: string): Promise<ServingFolder> {
  const certificate = await aCertificate();
  await writeCertificateFiles(directory, certificate);
  return { directory, caBundle: certificate.ca };
}
