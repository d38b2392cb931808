/** The StartupCPUBoost API: its types, and what the validating webhook says about an object. */

export { BoostCatalog } from './boostCatalog';
export { customResourceDefinition } from './customResourceDefinition';
export { lostFields, missingVersions } from './definitionChange';
export { POD_WEBHOOK } from './podWebhook';
export type { FromSchema } from './schemaType';
export { STARTUP_CPU_BOOST } from './startupCpuBoost.schema';
export type {
  BoostMetadata,
  StartupCPUBoost,
  StartupCPUBoostCondition,
  StartupCPUBoostContainerPolicy,
  StartupCPUBoostDurationPolicy,
  StartupCPUBoostSelector,
  StartupCPUBoostSpec,
  StartupCPUBoostStatus,
} from './startupCpuBoost';
export { reviewBoost } from './validation';
export type { BoostReview } from './validation';
