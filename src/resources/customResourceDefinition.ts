/** The CustomResourceDefinition of StartupCPUBoost. */

import type { Schema } from './schemaType';
import { STARTUP_CPU_BOOST, startupCpuBoostSchema } from './startupCpuBoost.schema';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly description: string;
  readonly jsonPath: string;
}

export const printerColumns: readonly PrinterColumn[] = [
  {
    name: 'Policy',
    type: 'string',
    description: 'The resource policies in short.',
    jsonPath: '.status.policy',
  },
  {
    name: 'Until',
    type: 'string',
    description: 'What ends the boost.',
    jsonPath: '.status.until',
  },
  {
    name: 'Active',
    type: 'integer',
    description: 'Containers whose CPU is raised now.',
    jsonPath: '.status.activeContainerBoosts',
  },
  {
    name: 'Total',
    type: 'integer',
    description: 'Containers whose CPU was raised so far.',
    jsonPath: '.status.totalContainerBoosts',
  },
  {
    name: 'Stuck',
    type: 'integer',
    description: 'Pods whose CPU should go back and could not.',
    jsonPath: '.status.stuckPods',
  },
  {
    name: 'Status',
    type: 'string',
    description: 'The reason of the Active condition.',
    jsonPath: '.status.conditions[?(@.type=="Active")].reason',
  },
  {
    name: 'Age',
    type: 'date',
    description: 'Time since creation.',
    jsonPath: '.metadata.creationTimestamp',
  },
];

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced';
    readonly names: Readonly<Record<string, string | readonly string[]>>;
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly subresources: { readonly status: Readonly<Record<string, never>> };
      readonly additionalPrinterColumns: readonly PrinterColumn[];
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

export function customResourceDefinition(): CustomResourceDefinition {
  const { group, version, kind, listKind, plural, singular, shortName } = STARTUP_CPU_BOOST;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, listKind, plural, singular, shortNames: [shortName] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: printerColumns,
          schema: { openAPIV3Schema: startupCpuBoostSchema },
        },
      ],
    },
  };
}
