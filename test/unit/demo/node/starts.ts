/** Two starts as the demo measures them. */
import type { Start } from '../../../../demo/node/start';

export const ORIGINAL = 250;

export function aStart(overrides: Partial<Start> = {}): Start {
  return {
    name: 'with-boost',
    readyAt: 12_000,
    endedAt: 15_100,
    quota: [
      { at: 1_500, millicores: 1_000 },
      { at: 12_100, millicores: 250 },
    ],
    restarts: 0,
    ...overrides,
  };
}

export const WITHOUT_BOOST = aStart({
  name: 'without-boost',
  readyAt: 50_000,
  endedAt: 53_000,
  quota: [{ at: 1_400, millicores: 250 }],
});
