/**
 * The boost engine: pure decisions about startup CPU boosts, without I/O and without a clock.
 *
 * Plain API objects go in, data comes out: `compileBoost` once per generation of a boost,
 * `decideBoost` when a pod is created, `decideRevert` whenever something about a boosted pod or its
 * boost has changed, `decideRaise` for a pod that is there and whose boost is yet to come,
 * `boostStatus` to tell people about it.
 */
export { compileBoost, policyFor } from './boost';
export type {
  BoostIdentity,
  CompiledBoost,
  ContainerPolicy,
  InvalidBoost,
  ValidBoost,
} from './boost';
export { isRevertible } from './boostConditions';
export type { BoostSurroundings, StatusCondition } from './boostConditions';
export { boostStatus } from './boostStatus';
export type { BoostStatus, BoostStatusInput, BoostStatusResult, BoostTally } from './boostStatus';
export type { BoostedContainer, SkippedContainer } from './containerBoost';
export { matchesContainer } from './containerMatcher';
export type { ContainerMatcher } from './containerMatcher';
export { comesBefore, decideBoost } from './decideBoost';
export type { BoostDecision, BoostInput, WayBack } from './decideBoost';
export { decideRaise } from './decideRaise';
export type { RaiseDecision, RaiseInput, RaiseLeaveCode, RaiseSettings } from './decideRaise';
export { decideRevert } from './decideRevert';
export type {
  BoostKnowledge,
  Raising,
  RevertDecision,
  RevertInput,
  RevertSettings,
} from './decideRevert';
export type { DurationPolicy, PodConditionPolicy } from './durationPolicy';
export type { Issue } from './issue';
export { fieldsOf, integerOf, isObject, itemsOf, textOf, timeOf } from './json';
export { jsonPointer } from './jsonPatch';
export type { JsonPatch, JsonPatchOperation } from './jsonPatch';
export { BOOST_KEY, ENDED_KEY, SKIPPED_KEY } from './keys';
export { MAX_CONTAINERS } from './podChecks';
export { readMetadata, readPod } from './pod';
export type { CpuResources, MetadataFacts, PodFacts } from './pod';
export { qosClassOf } from './qosClass';
export type { QosClass } from './qosClass';
export { formatCpu, parseQuantity } from './quantity';
export type { Quantity } from './quantity';
export {
  CONTAINER_SKIPS,
  END_REASONS,
  POD_SKIPS,
  RAISE_CAUSES,
  RAISE_SKIPS,
  REVERTIBLE_REASONS,
  STUCK_REASONS,
} from './reasons';
export type {
  ContainerSkipCode,
  EndReason,
  PodSkipCode,
  RaiseCause,
  RaiseSkipCode,
  RevertibleReason,
  StuckReason,
} from './reasons';
export { formatRecord, parseRecord } from './record';
export type { BoostedCpu, BoostRecord, ContainerRecord, ParsedRecord, RecordState } from './record';
export type { CpuLimits, ResourcePolicy } from './resourcePolicy';
export type { CpuChange } from './revertPatch';
export { canonicalSelector, matchesSelector } from './selector';
export type { Requirement, Selector } from './selector';
