/** The admission webhooks: boosts pods when they are created, validates boosts. */
export { startAdmission } from './admissionProcess';
export type { AdmissionProcess, AdmissionProcessOptions } from './admissionProcess';
export { ControllerLease } from './controllerLease';
export type { ControllerLeaseOptions } from './controllerLease';
export { NamespaceWatcher } from './namespaceWatcher';
export type {
  BoostDefaults,
  NamespaceSource,
  NamespaceView,
  NamespaceWatcherOptions,
} from './namespaceWatcher';
