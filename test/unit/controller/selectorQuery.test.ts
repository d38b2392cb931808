/** Selectors as the API server takes them. */
import { describe, expect, it } from '@jest/globals';
import { compileBoost } from '../../../src/boost-engine';
import { selectorQuery } from '../../../src/controller/selectorQuery';
import type { JsonObject } from '../../../src/kube';
import { aBoost } from '../../support/builders';

function queryOf(selector: JsonObject): string | undefined {
  const boost = compileBoost(aBoost({ selector }));
  return boost.kind === 'Valid' ? selectorQuery(boost.selector) : 'invalid';
}

const expression = (key: string, operator: string, values?: readonly string[]) => ({
  matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }],
});

describe('the query of a selector', () => {
  it.each<[JsonObject, string | undefined]>([
    [{}, ''],
    [{ matchLabels: { app: 'a', 'example.com/tier': 'b' } }, 'app in (a),example.com/tier in (b)'],
    [{ matchLabels: { app: '' } }, 'app in ()'],
    [expression('app', 'In', ['a', 'b']), 'app in (a,b)'],
    [expression('app', 'NotIn', ['a', 'b']), 'app notin (a,b)'],
    [expression('app', 'Exists'), 'app'],
    [expression('app', 'DoesNotExist'), '!app'],
  ])('%j is %j', (selector, query) => {
    expect(queryOf(selector)).toBe(query);
  });

  it.each<[string, JsonObject]>([
    ['a value that would end the list', expression('app', 'In', ['a)', 'b'])],
    ['a value that is no label value', expression('app', 'NotIn', ['a b'])],
    ['a key that would be another requirement', { matchLabels: { 'a,b': 'c' } }],
    ['more than an address holds', expression('app', 'In', ['a'.repeat(3_000), 'b'.repeat(3_000)])],
  ])('is none where the selector has %s', (_what, selector) => {
    expect(queryOf(selector)).toBeUndefined();
  });
});
