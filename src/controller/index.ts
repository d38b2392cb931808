/** The controller: gives boosted pods their CPU back, and keeps the status of the boosts. */
export { BoostOperator } from './boostOperator';
export type { BoostOperatorOptions } from './boostOperator';
export { isStopped } from './podWebhooks';
export { RevertAll, undoRevertAll } from './revertAll';
export type {
  RemainingPod,
  RevertAllOptions,
  RevertAllOutcome,
  RevertAllProgress,
  RevertAllSettings,
  WebhookState,
} from './revertAll';
export { WorkQueue } from './workQueue';
export type { WorkBand, WorkQueueDepth, WorkQueueOptions, WorkResult } from './workQueue';
