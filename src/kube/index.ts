/** The way to the API server: client, watches, caches and the operator shell. */
export { ApiError, failureAction, ifThere } from './apiFailure';
export type { ApiFailure, FailureAction, FailureCause } from './apiFailure';
export { sleep, systemClock } from './clock';
export type { Clock, Timer } from './clock';
export { identityOf, isJsonObject } from './jsonObject';
export type { JsonObject, ListPage, ObjectIdentity } from './jsonObject';
export { createKubeClient } from './kubeClient';
export type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  KubeClient,
  KubeClientOptions,
  ListOptions,
  Patch,
  Selection,
  WatchOptions,
  WriteOptions,
} from './kubeClient';
export { loadKubeConfig } from './kubeConfig';
export type { KubeConfig, KubeConfigSource } from './kubeConfig';
export {
  CUSTOM_RESOURCE_DEFINITIONS,
  EVENTS,
  LEASES,
  LIMIT_RANGES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  RESOURCE_QUOTAS,
  SECRETS,
  SELF_SUBJECT_ACCESS_REVIEWS,
  STARTUP_CPU_BOOSTS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  describeRef,
} from './resourceRef';
export type { CollectionRef, ObjectRef, ResourceRef } from './resourceRef';
export type { WatchEvent } from './watchStream';
export type { ResourceCache, ResourceChange } from './resourceCache';
export { ResourceWatch } from './resourceWatch';
export type { ResourceWatchOptions, WatchLogger, WatchStats } from './resourceWatch';
export { ResilientOperator } from './resilientOperator';
export type {
  RawResourceEvent,
  ResilientOperatorOptions,
  WatchedSelection,
} from './resilientOperator';
export { ServerClock } from './serverClock';
export { Watchdog } from './watchdog';
export { LeaseElector } from './leaseElector';
export type { LeaseElectorOptions } from './leaseElector';
export { claimLease, observeLease, releasedSpec } from './leaseElection';
export type { Claim, LeaseRecord, LeaseSettings, ObservedLease } from './leaseElection';
