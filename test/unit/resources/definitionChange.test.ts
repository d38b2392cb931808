/** What a change of the stored definition to ours would take away. */
import { describe, expect, it } from '@jest/globals';
import { lostFields, missingVersions } from '../../../src/resources';
import { aBoost } from '../../support/builders';

describe('versions that boosts may be stored in', () => {
  it.each([
    ['there is no definition', undefined, []],
    ['ours alone', { status: { storedVersions: ['v1alpha1'] } }, []],
    ['a newer one, too', { status: { storedVersions: ['v1alpha1', 'v1'] } }, ['v1']],
    ['the status is broken', { status: { storedVersions: 'v1' } }, []],
  ])('%s', (_what, stored, missing) => {
    expect(missingVersions(stored)).toEqual(missing);
  });
});

describe('fields that a boost would lose', () => {
  it('are none where all are known', () => {
    expect(lostFields(aBoost({ namespace: 'demo' }))).toEqual([]);
  });

  it.each([
    ['at the top', { more: 1 }, ['more']],
    ['in the specification', { spec: { mode: 'Later' } }, ['spec.mode']],
    [
      'in an item of a list, by its uppermost part',
      { spec: { resourcePolicy: { containerPolicies: [{}, { maximum: { requests: '2' } }] } } },
      ['spec.resourcePolicy.containerPolicies[1].maximum'],
    ],
    ['named as what every object has', { spec: { constructor: 1 } }, ['spec.constructor']],
    ['beside known ones', { spec: { durationPolicy: {}, a: 1, b: 2 } }, ['spec.a', 'spec.b']],
  ])('%s', (_where, boost, lost) => {
    expect(lostFields(boost)).toEqual(lost);
  });

  it.each([
    ['labels', { selector: { matchLabels: { constructor: 'a' } } }],
    ['metadata', { metadata: { future: 1 } }],
    ['status, which the controller writes anew', { status: { future: 1 } }],
    ['what is kept though it is not a field', { spec: { selector: { matchLabels: {} } } }],
    ['values that are of another kind', { spec: 'none' }],
  ])('are not %s', (_what, boost) => {
    expect(lostFields(boost)).toEqual([]);
  });
});
