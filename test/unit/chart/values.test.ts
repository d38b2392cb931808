/** The chart's values, their schema, their table and the settings of the program say the same. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { CHART, chartFiles, chartValues } from '../../../scripts/chart';
import { fieldsOf, isObject } from '../../../src/boost-engine';
import { parseAdmissionSettings, parseControllerSettings } from '../../../src/cli/settings';
import { objectAt, objectOf } from '../../support/objectAt';
import type { JsonObject } from '../../../src/kube';

const root = resolve(__dirname, '../../..');
const text = readFileSync(join(root, CHART, 'values.yaml'), 'utf8');
const values = objectOf(parse(text));
const schema = objectOf(JSON.parse(readFileSync(join(root, CHART, 'values.schema.json'), 'utf8')));

describe('what is derived in the chart', () => {
  it.each([...chartFiles(root)])('%s is committed as it is generated', (path, content) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(content);
  });

  it('is refused where a value is not described', () => {
    expect(() => chartValues('# -- one\na: 1\nb: 2\n')).toThrow('b: not described');
    expect(() => chartValues('a:\n  # -- one\n  b: 1\n  c: 2\n')).toThrow('a.c: not described');
  });

  it('has each value with its default and its comment', () => {
    expect(chartValues('# Of it.\na:\n  # -- One,\n  # two.\n  b: []\n')).toEqual([
      { path: 'a.b', defaultValue: [], description: 'One, two.' },
    ]);
  });
});

describe('the schema', () => {
  it('knows each value that there is, and no other', () => {
    const documented = chartValues(text).map(({ path }) => path);
    const known = leavesOf(schema, '').filter((path) => path !== 'global');
    // Below these the default is one value, and the keys are known all the same.
    const inside = /^(webhook\.\w+Selector|certificates\.certManager\.issuerRef)\..*/;
    const outer = new Set(known.map((path) => path.replace(inside, '$1')));
    expect([...outer].sort()).toEqual([...documented].sort());
  });

  it('leaves no object of ours open', () => {
    expect([...openObjects(schema, '')].sort()).toEqual([
      'admission.affinity',
      'admission.resources',
      'controller.affinity',
      'controller.resources',
      'global',
    ]);
  });
});

describe('the bounds of a setting', () => {
  const settings = objectOf(
    objectAt(resolved(objectAt(objectAt(schema, 'properties'), 'settings')), 'properties'),
  );
  const numbers = Object.entries(settings).flatMap(([key, value]) => {
    const { minimum, maximum } = objectOf(value);
    return typeof minimum === 'number' && typeof maximum === 'number'
      ? [{ key, minimum, maximum }]
      : [];
  });

  it.each(numbers)('$key are those of the program', ({ key, minimum, maximum }) => {
    const variable = key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    expect(isInBounds(variable, minimum)).toBe(true);
    expect(isInBounds(variable, maximum)).toBe(true);
    expect(isInBounds(variable, minimum - 1)).toBe(false);
    expect(isInBounds(variable, maximum + 1)).toBe(false);
  });

  it('are found for most of them', () => {
    expect(numbers.length).toBeGreaterThan(13);
    expect(Object.keys(settings).sort()).toEqual(Object.keys(objectAt(values, 'settings')).sort());
  });

  /** Whether the program takes it, whatever it says of two variables together. */
  function isInBounds(variable: string, value: number): boolean {
    const env = { [variable]: String(value) };
    const problems = [parseAdmissionSettings(env), parseControllerSettings(env)].flatMap(
      (parsed) => (parsed.kind === 'Invalid' ? parsed.problems : []),
    );
    return !problems.some(
      (problem) => problem.startsWith(`${variable}=`) && problem.includes(', from '),
    );
  }
});

/** With what `$ref` stands for. */
function resolved(node: JsonObject): JsonObject {
  const { $ref } = node;
  if (typeof $ref !== 'string') return node;
  return objectAt(objectAt(schema, 'definitions'), $ref.replace('#/definitions/', ''));
}

function leavesOf(node: JsonObject, path: string): readonly string[] {
  const target = resolved(node);
  const properties = Object.entries(objectAt(target, 'properties'));
  if (properties.length === 0) return [path];
  return properties.flatMap(([key, value]) =>
    leavesOf(objectOf(value), path === '' ? key : `${path}.${key}`),
  );
}

/** Objects that take any key, but for maps of texts. */
function openObjects(node: JsonObject, path: string): readonly string[] {
  const target = resolved(node);
  const properties = Object.entries(objectAt(target, 'properties'));
  const below = properties.flatMap(([key, value]) =>
    openObjects(objectOf(value), path === '' ? key : `${path}.${key}`),
  );
  const { type, additionalProperties } = target;
  const isMap = isObject(additionalProperties) && fieldsOf(additionalProperties).size > 0;
  const isOpen = type === 'object' && additionalProperties !== false && !isMap;
  return isOpen ? [path, ...below] : below;
}
