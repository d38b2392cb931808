/** What is committed is what the schema gives. */

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments, parse } from 'yaml';
import { fieldsOf } from '../../../src/boost-engine';
import { reviewBoost } from '../../../src/resources';
import { generatedFiles } from '../../../src/resources/generate';
import type { Schema } from '../../../src/resources/schemaType';
import { startupCpuBoostSchema } from '../../../src/resources/startupCpuBoost.schema';

const root = resolve(__dirname, '../../..');

describe('the generated files', () => {
  it.each([...generatedFiles(root)])('%s is committed as it is generated', (path, content) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(content);
  });

  it('come out the same every time', () => {
    expect([...generatedFiles(root)]).toEqual([...generatedFiles(root)]);
  });

  it('hold a definition without aliases, which some YAML readers around CRDs refuse', () => {
    const yaml = generatedFiles(root).get('crds/autoscaling.x-k8s.io_startupcpuboosts.yaml') ?? '';
    expect(yaml).not.toMatch(/[&*]a\d/);
    expect(parse(yaml)).toMatchObject({
      kind: 'CustomResourceDefinition',
      metadata: { name: 'startupcpuboosts.autoscaling.x-k8s.io' },
      spec: {
        scope: 'Namespaced',
        names: { shortNames: ['scb'] },
        versions: [{ name: 'v1alpha1', served: true, storage: true }],
      },
    });
  });
});

describe('the schema', () => {
  // An unbounded list or string makes the estimated cost of the rules around it that of a whole request.
  it('has bounds on every list, map and string that a user writes', () => {
    const written = Object.entries(startupCpuBoostSchema.properties).filter(
      ([name]) => !['apiVersion', 'kind', 'metadata'].includes(name),
    );
    expect(written.flatMap(([name, schema]) => unboundedBelow(name, schema))).toEqual([
      'status.conditions[].lastTransitionTime',
    ]);
  });

  it('describes every field', () => {
    const { selector, spec, status } = startupCpuBoostSchema.properties;
    expect(
      [...withoutDescription('selector', selector), ...withoutDescription('spec', spec)].concat(
        withoutDescription('status', status),
      ),
    ).toEqual([]);
  });
});

describe('the manifests in the documentation', () => {
  it.each(documentedBoosts())('%s is a valid boost without warnings', (_where, boost) => {
    expect(reviewBoost({ boost, others: [] })).toEqual({ errors: [], warnings: [] });
  });
});

function unboundedBelow(path: string, schema: Schema): string[] {
  return [
    ...(isUnbounded(schema) ? [path] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
      unboundedBelow(`${path}.${name}`, property),
    ),
    ...(schema.items === undefined ? [] : unboundedBelow(`${path}[]`, schema.items)),
    ...(schema.additionalProperties === undefined
      ? []
      : unboundedBelow(`${path}.<key>`, schema.additionalProperties)),
  ];
}

function isUnbounded(schema: Schema): boolean {
  if (schema.items !== undefined) return schema.maxItems === undefined;
  if (schema.additionalProperties !== undefined) return schema.maxProperties === undefined;
  const isText = schema.type === 'string' || schema['x-kubernetes-int-or-string'] === true;
  return isText && schema.maxLength === undefined && schema.enum === undefined;
}

function withoutDescription(path: string, schema: Schema): string[] {
  const fields = Object.entries({ ...schema.properties, ...schema.items?.properties });
  return fields.flatMap(([name, field]) => [
    ...(field.description === undefined ? [`${path}.${name}`] : []),
    ...withoutDescription(`${path}.${name}`, field),
  ]);
}

/** The complete boosts among the YAML files of docs/examples and the YAML blocks of the README and docs/. */
function documentedBoosts(): [string, unknown][] {
  const names = readdirSync(root, { recursive: false, encoding: 'utf8' }).filter(isText);
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(isText)
    .map((name) => join('docs', name));
  return [...names, ...docs].flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const blocks = path.endsWith('.md')
      ? [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, block]) => block ?? '')
      : [text];
    return blocks
      .flatMap(documentsOf)
      .filter((manifest) => fieldsOf(manifest).get('kind') === 'StartupCPUBoost')
      .map((manifest): [string, unknown] => [path, manifest]);
  });
}

function documentsOf(yaml: string): unknown[] {
  const manifests: unknown[] = [];
  for (const document of parseAllDocuments(yaml)) manifests.push(document.toJS());
  return manifests;
}

function isText(path: string): boolean {
  return path.endsWith('.md') || path.endsWith('.yaml');
}
