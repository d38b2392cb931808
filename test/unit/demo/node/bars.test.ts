/** The bars of the demo in the terminal. */
import { describe, expect, it } from '@jest/globals';
import { barsOf, legendOf } from '../../../../demo/node/bars';
import type { Scale } from '../../../../demo/node/bars';
import type { Start } from '../../../../demo/node/start';
import { WITHOUT_BOOST, aStart } from './starts';

const drawn = (start: Start, scale: Scale): string =>
  barsOf(start, scale)
    .map((cells) => cells.map(({ text }) => text).join(' '))
    .join('\n');

describe('the bars', () => {
  it('are as high as the quota and as long as its time', () => {
    expect(`\n${drawn(aStart(), { until: 16_000, highest: 1_000 })}`).toBe(`
  1000m │ ███████████    
   750m │ ███████████    
   500m │ ███████████    
   250m │ ██████████████ 
        └────────────┴───
                     ▲ Ready after 12.0 s`);
  });

  it('show parts of a row', () => {
    const start = aStart({ quota: [{ at: 0, millicores: 625 }] });
    const [top, third, half, low] = drawn(start, { until: 4_000, highest: 1_000 }).split('\n');
    expect([top, third, half, low].map((row) => row?.split('│')[1])).toEqual([
      '    ',
      '▄▄▄▄',
      '████',
      '████',
    ]);
  });

  it('stay within 80 columns, whatever the time', () => {
    for (const until of [1, 53_000, 68_001, 300_000, 3_600_000]) {
      const start = { ...WITHOUT_BOOST, readyAt: until - 1, endedAt: until };
      const lines = drawn(start, { until, highest: 1_000 }).split('\n');
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(80);
    }
  });

  it('have the moment of Ready under its column where its name stands on the left', () => {
    const lines = drawn(WITHOUT_BOOST, { until: 53_000, highest: 1_000 }).split('\n');
    expect(lines[5]?.indexOf('▲')).toBe(lines[4]?.indexOf('┴'));
    const late = drawn({ ...WITHOUT_BOOST, readyAt: 66_500 }, { until: 68_000, highest: 1_000 });
    const [axis, label] = late.split('\n').slice(4);
    expect(label).toContain('Ready after 66.5 s ▲');
    expect(label?.indexOf('▲')).toBe(axis?.indexOf('┴'));
  });

  it('show a container without a limit as a full column', () => {
    const start = aStart({ quota: [{ at: 0, millicores: Infinity }] });
    expect(drawn(start, { until: 4_000, highest: 1_000 }).split('\n')[0]).toContain('████');
  });
});

describe('the legend', () => {
  it.each([
    [16_000, 'one column is a second'],
    [68_000, 'one column is a second'],
    [68_001, 'one column is 2 seconds'],
    [300_000, 'one column is 5 seconds'],
  ])('of %d ms', (until, text) => {
    expect(legendOf({ until, highest: 1_000 })).toBe(text);
  });
});
