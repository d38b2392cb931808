/** The picture of the demo for the documents. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { pictureOf } from '../../../../demo/node/picture';
import type { Start } from '../../../../demo/node/start';
import { ORIGINAL, WITHOUT_BOOST, aStart } from './starts';

const TEXT = { title: 'Two starts', subtitle: 'a program' };

const drawn = (starts: readonly Start[] = [WITHOUT_BOOST, aStart()]): string =>
  pictureOf(starts, ORIGINAL, TEXT);

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The filled areas of one colour. */
function areas(svg: string, colour: string): readonly Area[] {
  const rects =
    /<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(.+)"\/>/g;
  return [...svg.matchAll(rects)]
    .filter(([, , , , , fill]) => fill === colour)
    .map(([, x, y, width, height]) => ({
      x: Number(x),
      y: Number(y),
      width: Number(width),
      height: Number(height),
    }));
}

const BOOSTED = '#fb8f44';
const USUAL = '#54aeff';

describe('the picture', () => {
  it('has the raised quota in its own colour, and four times as high', () => {
    const [raised] = areas(drawn(), BOOSTED);
    const usual = areas(drawn(), USUAL);
    expect(areas(drawn(), BOOSTED)).toHaveLength(1);
    expect(usual).toHaveLength(2);
    for (const { height } of usual) expect((raised?.height ?? 0) / height).toBeCloseTo(4);
  });

  it('has both starts on one scale of time', () => {
    const [whole] = areas(drawn(), USUAL);
    const [raised] = areas(drawn(), BOOSTED);
    const perSecond = (whole?.width ?? 0) / 51.6;
    expect((raised?.width ?? 0) / perSecond).toBeCloseTo(10.6, 1);
  });

  it('says when each was Ready', () => {
    expect(drawn().match(/>Ready after [\d.]+ s</g)).toEqual([
      '>Ready after 50.0 s<',
      '>Ready after 12.0 s<',
    ]);
  });

  it('says the same to those who cannot see it', () => {
    expect(drawn()).toContain(
      '<title>Two starts. without-boost: Ready after 50.0 s; with-boost: Ready after 12.0 s</title>',
    );
  });

  it('draws a container without a limit as high as the picture is', () => {
    const start = aStart({ quota: [{ at: 0, millicores: Infinity }] });
    const heights = areas(drawn([aStart(), start]), BOOSTED).map(({ height }) => height);
    expect(heights).toHaveLength(2);
    expect(heights[1]).toBe(heights[0]);
  });

  it('keeps within its frame', () => {
    for (const { x, y, width, height } of [...areas(drawn(), BOOSTED), ...areas(drawn(), USUAL)]) {
      expect(x + width).toBeLessThanOrEqual(760);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(height).toBeGreaterThan(0);
    }
  });

  it('escapes what it is given', () => {
    const svg = pictureOf([aStart({ name: 'a<b' })], ORIGINAL, { title: 'x & y', subtitle: '>' });
    expect(svg).toContain('a&lt;b');
    expect(svg).toContain('x &amp; y');
    expect(svg).not.toContain('a<b');
  });

  it('is the same for the same starts', () => {
    expect(drawn()).toBe(drawn());
  });
});

describe('the picture in the documents', () => {
  const root = join(__dirname, '..', '..', '..', '..');
  const svg = readFileSync(join(root, 'docs', 'images', 'node-demo.svg'), 'utf8');

  it('has no date and no path of a machine', () => {
    expect(svg).not.toMatch(/\d{4}-\d{2}-\d{2}|\d:\d{2}|\/(?:home|root|tmp|work|var)\b/);
  });

  it('has the times that the README says', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const [, slow = '', fast = ''] = /Ready after ([\d.]+ s) and ([\d.]+ s)\]/.exec(readme) ?? [];
    expect(svg.match(/(?<=>Ready after )[\d.]+ s/g)).toEqual([slow, fast]);
  });
});
