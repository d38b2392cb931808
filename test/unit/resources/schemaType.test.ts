/** The types that are derived from the schema are the ones a person would have written. */

import { describe, expect, it } from '@jest/globals';
import type { BoostStatus } from '../../../src/boost-engine';
import type {
  FromSchema,
  StartupCPUBoost,
  StartupCPUBoostContainerPolicy,
  StartupCPUBoostDurationPolicy,
  StartupCPUBoostSelector,
  StartupCPUBoostStatus,
} from '../../../src/resources';

/** `true` where each type can stand for the other. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

/** Compiles only with a type that says `true`. */
function prove(same: true): void {
  expect(same).toBe(true);
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

describe('FromSchema', () => {
  it('makes what is required a required property, and the rest optional', () => {
    prove(
      true satisfies Same<
        FromSchema<{
          type: 'object';
          required: readonly ['a'];
          properties: { a: { type: 'string' }; b: { type: 'integer' } };
        }>,
        { readonly a: string; readonly b?: number }
      >,
    );
  });

  it('makes an enum a union, and an int-or-string a number or a string', () => {
    prove(
      true satisfies Same<
        FromSchema<{ type: 'string'; enum: readonly ['In', 'NotIn'] }>,
        'In' | 'NotIn'
      >,
    );
    prove(true satisfies Same<FromSchema<{ 'x-kubernetes-int-or-string': true }>, number | string>);
  });

  it('makes lists and maps of what their schemas describe', () => {
    prove(
      true satisfies Same<
        FromSchema<{ type: 'array'; items: { type: 'integer' } }>,
        readonly number[]
      >,
    );
    prove(
      true satisfies Same<
        FromSchema<{ type: 'object'; additionalProperties: { type: 'string' } }>,
        Readonly<Record<string, string>>
      >,
    );
  });

  it('leaves an object without a schema unknown', () => {
    prove(true satisfies Same<FromSchema<{ type: 'object' }>, Readonly<Record<string, unknown>>>);
  });
});

describe('StartupCPUBoost', () => {
  it('has the selector of Kubernetes', () => {
    prove(
      true satisfies Same<
        StartupCPUBoostSelector,
        {
          readonly matchLabels?: Readonly<Record<string, string>>;
          readonly matchExpressions?: readonly LabelRequirement[];
        }
      >,
    );
  });

  it('has container policies with either form of matcher and either form of resources', () => {
    prove(
      true satisfies Same<
        StartupCPUBoostContainerPolicy,
        {
          readonly containerName?: string;
          readonly matchContainers?: {
            readonly type: 'ExactName' | 'RegexName';
            readonly value: string;
          };
          readonly percentageIncrease?: { readonly value: number };
          readonly fixedResources?: {
            readonly requests: number | string;
            readonly limits?: number | string;
          };
        }
      >,
    );
  });

  it('has both forms of duration', () => {
    prove(
      true satisfies Same<
        StartupCPUBoostDurationPolicy,
        {
          readonly fixedDuration?: {
            readonly unit: 'Seconds' | 'Minutes';
            readonly value: number;
          };
          readonly podCondition?: {
            readonly type: string;
            readonly status: 'True' | 'False' | 'Unknown';
          };
        }
      >,
    );
  });

  it('names its kind and version as literals', () => {
    prove(true satisfies Same<StartupCPUBoost['kind'], 'StartupCPUBoost'>);
    prove(true satisfies Same<StartupCPUBoost['apiVersion'], 'autoscaling.x-k8s.io/v1alpha1'>);
  });

  it('takes the status that the engine computes', () => {
    prove(true satisfies BoostStatus extends StartupCPUBoostStatus ? true : false);
    prove(true satisfies Same<keyof BoostStatus, keyof StartupCPUBoostStatus>);
  });
});
