/** Quantities: what the API server reads, exactly, and how CPU is written. */
import { describe, expect, it } from '@jest/globals';
import {
  formatCpu,
  increaseByPercent,
  parseQuantity,
  roundUpToMilli,
  sameQuantity,
  storedCpu,
} from '../../../src/boost-engine/quantity';

const CORE = 1_000_000_000n;
const MILLI = 1_000_000n;

describe('parseQuantity', () => {
  it.each<[string, bigint]>([
    ['0', 0n],
    ['1', CORE],
    ['100m', 100n * MILLI],
    ['0.1', 100n * MILLI],
    ['1.5', 1_500n * MILLI],
    ['250u', 250_000n],
    ['250n', 250n],
    ['1k', 1_000n * CORE],
    ['2M', 2_000_000n * CORE],
    ['2G', 2_000_000_000n * CORE],
    ['2T', 2n * 10n ** 12n * CORE],
    ['2P', 2n * 10n ** 15n * CORE],
    ['2E', 2n * 10n ** 18n * CORE],
    ['1Ki', 1_024n * CORE],
    ['1.5Ki', 1_536n * CORE],
    ['64Mi', 64n * 2n ** 20n * CORE],
    ['1Gi', 2n ** 30n * CORE],
    ['1Ti', 2n ** 40n * CORE],
    ['1Pi', 2n ** 50n * CORE],
    ['1Ei', 2n ** 60n * CORE],
  ])('reads every suffix: %s', (text, expected) => {
    expect(parseQuantity(text)).toBe(expected);
  });

  it.each<[string, bigint]>([
    ['1e3', 1_000n * CORE],
    ['1E3', 1_000n * CORE],
    ['1e+3', 1_000n * CORE],
    ['5e-1', 500n * MILLI],
    ['1.25e2', 125n * CORE],
    ['1E', 10n ** 18n * CORE],
  ])('tells an exponent from the suffix E: %s', (text, expected) => {
    expect(parseQuantity(text)).toBe(expected);
  });

  it.each<[string, bigint]>([
    ['+2', 2n * CORE],
    ['-2', -2n * CORE],
    ['-0', 0n],
    ['007', 7n * CORE],
    ['.5', 500n * MILLI],
    ['5.', 5n * CORE],
    ['0.000', 0n],
  ])('takes signs, leading zeros and bare points as the API server does: %s', (text, expected) => {
    expect(parseQuantity(text)).toBe(expected);
  });

  it.each<[string, bigint]>([
    ['0.0000000001', 1n],
    ['0.1n', 1n],
    ['1.0000000001', CORE + 1n],
    ['-0.1n', -1n],
    ['1e-99', 1n],
  ])('rounds what is finer than a billionth away from zero: %s', (text, expected) => {
    expect(parseQuantity(text)).toBe(expected);
  });

  it.each([
    '',
    ' ',
    ' 1',
    '1 ',
    '1\n',
    '.',
    '+',
    '-',
    'm',
    'e3',
    '1K',
    '1mi',
    '0.1am',
    '1.1.M',
    '1+1.0M',
    '.5i',
    '1i',
    '1kk',
    '1e',
    '1e+',
    '1e1.5',
    '1e100',
    '--1',
    '+-1',
    '0x10',
    '1_000',
    '1,5',
    '٣',
    'NaN',
    'Infinity',
    'constructor',
    '__proto__',
    '1constructor',
  ])('refuses %j', (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });

  it.each([undefined, null, true, 1n, [], ['1'], {}, { toString: () => '1' }, Symbol('1')])(
    'refuses a value that is neither text nor number (%#)',
    (value) => {
      expect(parseQuantity(value)).toBeUndefined();
    },
  );

  it.each<[number, bigint | undefined]>([
    [2, 2n * CORE],
    [0.5, 500n * MILLI],
    [1e21, 10n ** 21n * CORE],
    [1e-7, 100n],
    [Number.NaN, undefined],
    [Infinity, undefined],
  ])('reads the number %d of a manifest', (value, expected) => {
    expect(parseQuantity(value)).toBe(expected);
  });

  it('reads texts of up to 64 characters, and no longer ones however long', () => {
    expect(parseQuantity('9'.repeat(64))).toBe((10n ** 64n - 1n) * CORE);
    expect(parseQuantity('9'.repeat(65))).toBeUndefined();
    expect(parseQuantity('1'.repeat(1_000_000))).toBeUndefined();
    expect(parseQuantity(`0.${'0'.repeat(1_000_000)}1`)).toBeUndefined();
  });
});

describe('formatCpu', () => {
  it.each<[bigint, string]>([
    [0n, '0'],
    [CORE, '1'],
    [1_500n * MILLI, '1500m'],
    [100n * MILLI, '100m'],
    [1n, '1m'],
    [MILLI + 1n, '2m'],
    [50_500_000n, '51m'],
    [-CORE, '-1'],
    [10n ** 30n, '1000000000000000000000'],
  ])('writes %s billionths of a core as %s', (quantity, expected) => {
    expect(formatCpu(quantity)).toBe(expected);
  });
});

describe('increaseByPercent', () => {
  it.each<[string, bigint, string]>([
    ['1', 100n, '2'],
    ['250m', 50n, '375m'],
    ['5m', 50n, '8m'],
    ['1m', 1n, '2m'],
    ['333m', 33n, '443m'],
    ['100m', 1n, '101m'],
    ['0', 100n, '0'],
    ['1n', 100n, '1m'],
    ['3', 1_000_000n, '30003'],
  ])('raises %s by %s percent to %s, rounded up to 1m', (text, percent, expected) => {
    expect(formatCpu(increaseByPercent(parseQuantity(text) ?? -1n, percent))).toBe(expected);
  });
});

describe('roundUpToMilli', () => {
  it.each<[bigint, bigint]>([
    [0n, 0n],
    [1n, MILLI],
    [MILLI, MILLI],
    [MILLI + 1n, 2n * MILLI],
  ])('makes %s into %s', (quantity, expected) => {
    expect(roundUpToMilli(quantity)).toBe(expected);
  });
});

describe('storedCpu', () => {
  it.each([
    ['250m', '250m'],
    ['0.25', '0.25'],
    ['1e3', '1e3'],
    ['500u', '1m'],
    ['999999999n', '1'],
    ['0.0005', '1m'],
  ])('writes %s as %s', (text, expected) => {
    expect(storedCpu(text, parseQuantity(text) ?? -1n)).toBe(expected);
  });
});

describe('sameQuantity', () => {
  it.each<[string | undefined, string | undefined, boolean]>([
    ['500m', '0.5', true],
    ['1k', '1000', true],
    ['1', '1', true],
    ['1', '2', false],
    [undefined, undefined, true],
    ['0', undefined, false],
    [undefined, '0', false],
    ['junk', 'junk', false],
    // The API server stores whole milli-cores, so these two are one value there.
    ['0.5m', '1m', true],
    ['50500u', '51m', true],
  ])('of %s and %s is %s', (a, b, expected) => {
    expect(sameQuantity(a, b)).toBe(expected);
  });
});
