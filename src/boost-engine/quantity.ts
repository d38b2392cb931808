/** Exact arithmetic on Kubernetes resource quantities. */

/**
 * A quantity in billionths of its unit: nano-cores for CPU, nano-bytes for memory.
 *
 * A billionth is the finest step that Kubernetes keeps (`n`), so every quantity is a whole number
 * and nothing is ever lost to floating point.
 */
export type Quantity = bigint;

const NANO = 1_000_000_000n;
const NANO_PER_MILLI = 1_000_000n;

/**
 * Longer texts are no quantity: the API server stores at most 19 digits, a sign, a point and a
 * suffix. The bound keeps the arithmetic on text from strangers small.
 */
const MAX_LENGTH = 64;

/** Multipliers in nano-units of the suffixes in k8s.io/apimachinery/pkg/api/resource/suffix.go. */
const SUFFIXES: ReadonlyMap<string, bigint> = new Map([
  ['n', 1n],
  ['u', 1_000n],
  ['m', NANO_PER_MILLI],
  ['', NANO],
  ['k', NANO * 10n ** 3n],
  ['M', NANO * 10n ** 6n],
  ['G', NANO * 10n ** 9n],
  ['T', NANO * 10n ** 12n],
  ['P', NANO * 10n ** 15n],
  ['E', NANO * 10n ** 18n],
  ['Ki', NANO * 2n ** 10n],
  ['Mi', NANO * 2n ** 20n],
  ['Gi', NANO * 2n ** 30n],
  ['Ti', NANO * 2n ** 40n],
  ['Pi', NANO * 2n ** 50n],
  ['Ei', NANO * 2n ** 60n],
]);

/** Sign, digits before and after the point, then a suffix or a decimal exponent of two digits. */
const SYNTAX = /^([+-]?)(\d*)(?:\.(\d*))?(?:([a-zA-Z]{1,2})|[eE]([+-]?\d{1,2}))?$/;

/** Reads a quantity as the API server does; undefined where the value is none. */
export function parseQuantity(value: unknown): Quantity | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return undefined;
  const match = SYNTAX.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = '', fraction = '', suffix = '', exponent = '0'] = match;
  const multiplier = SUFFIXES.get(suffix);
  if (whole + fraction === '' || multiplier === undefined) return undefined;
  const scale = Number(exponent) - fraction.length;
  const scaled = BigInt(whole + fraction) * multiplier * 10n ** BigInt(Math.max(scale, 0));
  const magnitude = divideRoundingUp(scaled, 10n ** BigInt(Math.max(-scale, 0)));
  return sign === '-' ? -magnitude : magnitude;
}

/** Rounded up to whole milli-cores, the finest step in which the API server stores CPU. */
export function roundUpToMilli(quantity: Quantity): Quantity {
  return divideRoundingUp(quantity, NANO_PER_MILLI) * NANO_PER_MILLI;
}

/** Canonical text of a CPU quantity: whole cores where it is whole, else milli-cores rounded up. */
export function formatCpu(quantity: Quantity): string {
  const milli = divideRoundingUp(quantity, NANO_PER_MILLI);
  return milli % 1_000n === 0n ? String(milli / 1_000n) : `${String(milli)}m`;
}

/** `percent` more than the quantity, rounded up to whole milli-cores. */
export function increaseByPercent(quantity: Quantity, percent: bigint): Quantity {
  return roundUpToMilli(divideRoundingUp(quantity * (100n + percent), 100n));
}

/** The text as the API server would store it: its own words, unless it is finer than a milli-core. */
export function storedCpu(text: string, quantity: Quantity): string {
  return roundUpToMilli(quantity) === quantity ? text : formatCpu(quantity);
}

/**
 * Whether two texts name the same CPU (`0.5` and `500m`), or are both absent, as the API server
 * stores it: in whole milli-cores.
 */
export function sameQuantity(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const [left, right] = [parseQuantity(a), parseQuantity(b)];
  if (left === undefined || right === undefined) return false;
  return roundUpToMilli(left) === roundUpToMilli(right);
}

function divideRoundingUp(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value % divisor > 0n ? quotient + 1n : quotient;
}
