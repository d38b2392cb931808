/** StartupCPUBoost as TypeScript types, derived from its schema. */

import type { FromSchema } from './schemaType';
import type { STARTUP_CPU_BOOST, startupCpuBoostSchema } from './startupCpuBoost.schema';

type Fields = FromSchema<typeof startupCpuBoostSchema>;

/** The part of metav1.ObjectMeta that writers of boosts use. */
export interface BoostMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A manifest as the schema lets it in. An object from outside is parsed by `compileBoost`, not cast to this. */
export type StartupCPUBoost = Omit<Fields, 'apiVersion' | 'kind' | 'metadata' | 'selector'> & {
  readonly apiVersion: `${typeof STARTUP_CPU_BOOST.group}/${typeof STARTUP_CPU_BOOST.version}`;
  readonly kind: typeof STARTUP_CPU_BOOST.kind;
  readonly metadata: BoostMetadata;
  /** Required on create by a rule, not by the schema: older objects may lack it. */
  readonly selector: StartupCPUBoostSelector;
};

export type StartupCPUBoostSelector = NonNullable<Fields['selector']>;
export type StartupCPUBoostSpec = Fields['spec'];
export type StartupCPUBoostContainerPolicy =
  StartupCPUBoostSpec['resourcePolicy']['containerPolicies'][number];
export type StartupCPUBoostDurationPolicy = StartupCPUBoostSpec['durationPolicy'];
export type StartupCPUBoostStatus = NonNullable<Fields['status']>;
export type StartupCPUBoostCondition = NonNullable<StartupCPUBoostStatus['conditions']>[number];
