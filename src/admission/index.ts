/** The admission webhooks: boosts pods when they are created, validates boosts. */
export { startAdmission } from './admissionProcess';
export type { AdmissionProcess, AdmissionProcessOptions } from './admissionProcess';
export { NamespaceWatcher } from './namespaceWatcher';
export type { NamespaceSource, NamespaceView } from './namespaceWatcher';
