import { describe, expect, it } from '@jest/globals';
import { faultName, makePlan } from '../../api/chaos/plan';

const LONG = { seed: 7, durationMs: 600_000, podsPerSecond: 3, faultEveryMs: 6_500 };

describe('the plan of a chaos run', () => {
  it('is the same for the same seed, and another one for another', () => {
    expect(makePlan(LONG)).toEqual(makePlan(LONG));
    expect(makePlan({ ...LONG, seed: 8 }).pods).not.toEqual(makePlan(LONG).pods);
    expect(makePlan({ ...LONG, seed: 8 }).faults).not.toEqual(makePlan(LONG).faults);
  });

  it('has the same pods, however many faults there are', () => {
    expect(makePlan({ ...LONG, faultEveryMs: 1_000 }).pods).toEqual(makePlan(LONG).pods);
  });

  it.each([1, 2, 3, 4, 5])('is large enough in ten minutes with seed %i', (seed) => {
    const { pods, faults } = makePlan({ ...LONG, seed });
    expect(pods.length).toBeGreaterThan(1_000);
    expect(pods.length).toBeLessThan(2_600);
    expect(faults.length).toBeGreaterThan(50);
  });

  it.each([1, 2, 3, 4, 5])('has every kind of fault in ten minutes with seed %i', (seed) => {
    const { faults } = makePlan({ ...LONG, seed });
    const kinds = new Set(faults.map(({ fault }) => faultName(fault)));
    expect([...kinds].sort()).toEqual([
      'blank caBundles',
      'delete and recreate boost',
      'edit boost',
      'empty serving Secret',
      'kill admission',
      'kill leader',
      'kill standby',
      'pause admission',
      'pause leader',
      'pause standby',
      'restart API server',
      'stall admission',
      'stall leader',
      'stop admission',
      'stop leader',
    ]);
  });

  it('names each pod once, and keeps all within its time', () => {
    const { pods, faults } = makePlan(LONG);
    expect(new Set(pods.map(({ name }) => name)).size).toBe(pods.length);
    const times = [...pods.map(({ createAtMs }) => createAtMs), ...faults.map(({ atMs }) => atMs)];
    expect(Math.max(...times)).toBeLessThan(LONG.durationMs);
  });
});
