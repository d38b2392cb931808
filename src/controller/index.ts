/** The controller: gives boosted pods their CPU back, and keeps the status of the boosts. */
export { BoostOperator } from './boostOperator';
export type { BoostOperatorOptions } from './boostOperator';
export { WorkQueue } from './workQueue';
export type { WorkBand, WorkQueueDepth, WorkQueueOptions, WorkResult } from './workQueue';
