/** The admission webhooks: boosts pods when they are created, validates boosts. */
export { startAdmission } from './admissionProcess';
export type { AdmissionProcess, AdmissionProcessOptions } from './admissionProcess';
export type { BoostSource } from './app';
export { BoostWatcher } from './boostWatcher';
export { CertificateError } from './certificate';
