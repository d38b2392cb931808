/** The starts as an SVG picture: for each of them the CPU quota over time, on one scale. */
import { highestQuota, quotaText, secondsText } from './start';
import type { Start } from './start';

export interface PictureText {
  readonly title: string;
  readonly subtitle: string;
}

const WIDTH = 760;
const LEFT = 64;
const RIGHT = 24;
const TOP = 88;
const PANEL = 120;
/** Between two panels, with the name of the lower one. */
const GAP = 44;
const AXIS = 44;
const CHART = WIDTH - LEFT - RIGHT;

const FONT = 'system-ui, -apple-system, Segoe UI, Roboto, sans-serif';
const INK = '#1f2328';
const FAINT = '#656d76';
const GRID = '#d8dee4';
const READY = '#1a7f37';
const USUAL = '#54aeff';
const BOOSTED = '#fb8f44';

interface Scale {
  readonly until: number;
  readonly highest: number;
}

/** The same text for the same starts: no date, no name of a machine. */
export function pictureOf(starts: readonly Start[], original: number, text: PictureText): string {
  const scale = {
    until: Math.max(...starts.map(({ endedAt }) => endedAt)),
    highest: highestQuota(starts, original),
  };
  const height = TOP + starts.length * (PANEL + GAP) - GAP + AXIS;
  const summary = starts.map(({ name, readyAt }) => `${name}: Ready after ${secondsText(readyAt)}`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="${FONT}" role="img">`,
    `<title>${escaped(`${text.title}. ${summary.join('; ')}`)}</title>`,
    `<rect width="${WIDTH}" height="${height}" rx="8" fill="#ffffff"/>`,
    label(24, 30, text.title, { size: 17, weight: 600 }),
    label(24, 50, text.subtitle, { size: 12, colour: FAINT }),
    ...starts.flatMap((start, index) =>
      panelOf(start, TOP + index * (PANEL + GAP), original, scale),
    ),
    ...axisOf(height - AXIS, scale),
    '</svg>',
    '',
  ].join('\n');
}

function panelOf(start: Start, top: number, original: number, scale: Scale): readonly string[] {
  const bottom = top + PANEL;
  const x = (at: number): number => xOf(at, scale);
  const y = (millicores: number): number => bottom - (millicores / scale.highest) * (PANEL - 18);
  const levels = [...new Set([original, scale.highest])];
  const ready = x(start.readyAt);
  const isLeft = ready > WIDTH - RIGHT - 130;
  const steps = start.quota.map((step, index) => {
    const millicores = Math.min(step.millicores, scale.highest);
    const end = start.quota[index + 1]?.at ?? start.endedAt;
    const colour = step.millicores > original ? BOOSTED : USUAL;
    const size = `width="${n(x(end) - x(step.at))}" height="${n(bottom - y(millicores))}"`;
    return `<rect x="${n(x(step.at))}" y="${n(y(millicores))}" ${size} fill="${colour}"/>`;
  });
  return [
    ...levels.flatMap((level) => [
      line(LEFT, y(level), WIDTH - RIGHT, y(level), GRID),
      label(LEFT - 8, y(level) + 4, quotaText(level), {
        size: 11,
        colour: FAINT,
        anchor: 'end',
      }),
    ]),
    ...steps,
    line(LEFT, bottom, WIDTH - RIGHT, bottom, FAINT),
    line(ready, top - 4, ready, bottom, READY, '4 3'),
    label(LEFT, top - 2, start.name, { size: 13, weight: 600 }),
    label(isLeft ? ready - 6 : ready + 6, top + 8, `Ready after ${secondsText(start.readyAt)}`, {
      size: 12,
      colour: READY,
      weight: 600,
      anchor: isLeft ? 'end' : 'start',
    }),
  ];
}

function axisOf(bottom: number, scale: Scale): readonly string[] {
  const step = [1, 2, 5, 10, 20, 60].find((each) => scale.until / 1_000 / each <= 10) ?? 120;
  const marks = Array.from(
    { length: Math.floor(scale.until / 1_000 / step) + 1 },
    (_, index) => index * step,
  );
  return [
    ...marks.map((seconds) =>
      label(xOf(seconds * 1_000, scale), bottom + 16, `${seconds} s`, {
        size: 11,
        colour: FAINT,
        anchor: 'middle',
      }),
    ),
    label(WIDTH - RIGHT, bottom + 34, 'CPU quota of the container, from its cgroup', {
      size: 11,
      colour: FAINT,
      anchor: 'end',
    }),
  ];
}

function xOf(at: number, { until }: Scale): number {
  return LEFT + (at / until) * CHART;
}

interface LabelStyle {
  readonly size: number;
  readonly weight?: number;
  readonly colour?: string;
  readonly anchor?: 'start' | 'middle' | 'end';
}

function label(x: number, y: number, text: string, style: LabelStyle): string {
  const { size, weight = 400, colour = INK, anchor = 'start' } = style;
  const look = `font-size="${size}" font-weight="${weight}" fill="${colour}" text-anchor="${anchor}"`;
  return `<text x="${n(x)}" y="${n(y)}" ${look}>${escaped(text)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string, dash = ''): string {
  const dashed = dash === '' ? '' : ` stroke-dasharray="${dash}"`;
  return `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" stroke="${colour}"${dashed}/>`;
}

/** One digit is below what can be seen. */
function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
