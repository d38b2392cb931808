/** What the demo concludes from the quota of a start. */
import { describe, expect, it } from '@jest/globals';
import { giveBackOf, highestQuota, quotaAt, quotaText } from '../../../../demo/node/start';
import { ORIGINAL, WITHOUT_BOOST, aStart } from './starts';

describe('what has become of a boost', () => {
  it('is given back, so long after Ready', () => {
    expect(giveBackOf(aStart(), ORIGINAL)).toEqual({ kind: 'GivenBack', afterReadyMs: 100 });
  });

  it('is given back before Ready where the quota fell before', () => {
    const start = aStart({ readyAt: 12_500 });
    expect(giveBackOf(start, ORIGINAL)).toEqual({ kind: 'GivenBack', afterReadyMs: -400 });
  });

  it('is not given back while the quota is the raised one', () => {
    const start = aStart({ quota: [{ at: 1_500, millicores: 1_000 }] });
    expect(giveBackOf(start, ORIGINAL)).toEqual({ kind: 'NotGivenBack', millicores: 1_000 });
  });

  it('is not given back where less or another amount came back', () => {
    const quota = [...aStart().quota, { at: 13_000, millicores: 200 }];
    expect(giveBackOf(aStart({ quota }), ORIGINAL)).toEqual({
      kind: 'NotGivenBack',
      millicores: 200,
    });
  });

  it('is not given back where the limit has gone', () => {
    const start = aStart({ quota: [{ at: 1_500, millicores: Infinity }] });
    expect(giveBackOf(start, ORIGINAL)).toEqual({ kind: 'NotGivenBack', millicores: Infinity });
  });

  it('counts from the last time that it was given back', () => {
    const quota = [
      ...aStart().quota,
      { at: 12_500, millicores: 1_000 },
      { at: 14_000, millicores: 250 },
    ];
    expect(giveBackOf(aStart({ quota }), ORIGINAL)).toEqual({
      kind: 'GivenBack',
      afterReadyMs: 2_000,
    });
  });

  it('was never there where the quota was not raised', () => {
    expect(giveBackOf(WITHOUT_BOOST, ORIGINAL)).toEqual({ kind: 'NotRaised' });
  });

  it('was never there where no cgroup has been seen', () => {
    expect(giveBackOf(aStart({ quota: [] }), ORIGINAL)).toEqual({ kind: 'NotRaised' });
  });
});

describe('the quota at a moment', () => {
  it.each([
    ['before the container runs', 1_499, undefined],
    ['at the first look', 1_500, 1_000],
    ['just before a change', 12_099, 1_000],
    ['at a change', 12_100, 250],
    ['after the last look', 15_101, undefined],
  ])('%s', (_, at, millicores) => {
    expect(quotaAt(aStart(), at)).toBe(millicores);
  });
});

it('the highest quota is that of any of the starts', () => {
  expect(highestQuota([WITHOUT_BOOST, aStart()], ORIGINAL)).toBe(1_000);
});

it('the highest quota is finite where a container has no limit', () => {
  const start = aStart({ quota: [{ at: 0, millicores: Infinity }] });
  expect(highestQuota([start], ORIGINAL)).toBe(ORIGINAL);
});

it('a container without a limit has no number', () => {
  expect([250, Infinity].map(quotaText)).toEqual(['250m', 'no limit']);
});
