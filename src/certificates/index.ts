/** The certificates of the webhooks: made, published, replaced in time, and handed to the server. */
export { CertificateFiles } from './certificateFiles';
export { CertificateKeeper } from './certificateKeeper';
export type { CertificateKeeperOptions } from './certificateKeeper';
export type { CertificateSource } from './certificateSource';
export type { CertificateNames } from './certificateStore';
export { issueAuthority, issueLeaf } from './issuer';
export type { AuthorityRequest, IssuedCertificate, LeafRequest } from './issuer';
export type { RotationSettings } from './rotationPlan';
export { CertificateError, readServingCertificate } from './servingCertificate';
export type { ServingCertificate } from './servingCertificate';
export { ServingSecret } from './servingSecret';
