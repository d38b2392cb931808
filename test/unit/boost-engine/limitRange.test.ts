/** LimitRanges: what the API server refuses, and what it would add. */
import { describe, expect, it } from '@jest/globals';
import {
  addsDefaults,
  exceedsLimitRange,
  readLimitRange,
} from '../../../src/boost-engine/limitRange';
import { readPod } from '../../../src/boost-engine/pod';
import { aContainer, aPod } from '../../support/builders';

interface Given {
  readonly request?: string;
  readonly limit?: string;
  readonly restartPolicy?: string;
}

function container({ request, limit, restartPolicy }: Given, index: number) {
  return aContainer({
    name: `c${index}`,
    resources: {
      ...(request === undefined ? {} : { requests: { cpu: request } }),
      ...(limit === undefined ? {} : { limits: { cpu: limit } }),
    },
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  });
}

function shape(containers: readonly Given[], initContainers: readonly Given[] = []) {
  return readPod(
    aPod({
      containers: containers.map(container),
      spec: { initContainers: initContainers.map(container) },
    }),
  );
}

const items = (type: string, item: object) =>
  readLimitRange({ spec: { limits: [{ type, ...item }] } });

describe('exceedsLimitRange for a container', () => {
  it.each<[string, object, Given, boolean]>([
    ['maximum, both at it', { max: { cpu: '2' } }, { request: '2', limit: '2' }, false],
    ['maximum, limit above', { max: { cpu: '2' } }, { request: '1', limit: '2001m' }, true],
    ['maximum, no limit', { max: { cpu: '2' } }, { request: '1' }, true],
    ['maximum of something else', { max: { memory: '1' } }, { request: '1' }, false],
    ['minimum, both at it', { min: { cpu: '1' } }, { request: '1', limit: '1' }, false],
    ['minimum, request below', { min: { cpu: '1' } }, { request: '999m', limit: '1' }, true],
    ['minimum, no request', { min: { cpu: '1' } }, { limit: '1' }, true],
    ['minimum, no limit', { min: { cpu: '1' } }, { request: '1' }, false],
    [
      'ratio, at it',
      { maxLimitRequestRatio: { cpu: '4' } },
      { request: '250m', limit: '1' },
      false,
    ],
    ['ratio, above', { maxLimitRequestRatio: { cpu: '4' } }, { request: '249m', limit: '1' }, true],
    ['ratio, no limit', { maxLimitRequestRatio: { cpu: '4' } }, { request: '1' }, true],
    [
      'ratio, a request of zero',
      { maxLimitRequestRatio: { cpu: '4' } },
      { request: '0', limit: '1' },
      true,
    ],
    ['defaults alone', { default: { cpu: '1' } }, { request: '2', limit: '2' }, false],
  ])('%s', (_what, item, given, expected) => {
    expect(exceedsLimitRange(items('Container', item), shape([given]))).toBe(expected);
  });

  it('looks at every container and init container', () => {
    const [small, large] = [
      { request: '1', limit: '1' },
      { request: '3', limit: '3' },
    ];
    const range = items('Container', { max: { cpu: '2' } });
    expect(exceedsLimitRange(range, shape([small, small], [small]))).toBe(false);
    expect(exceedsLimitRange(range, shape([small, large]))).toBe(true);
    expect(exceedsLimitRange(range, shape([small], [large]))).toBe(true);
  });
});

describe('exceedsLimitRange for a pod', () => {
  const one = { request: '1', limit: '1' };
  const two = { request: '2', limit: '2' };
  const sidecar = { ...one, restartPolicy: 'Always' };

  it.each<[string, readonly Given[], readonly Given[], boolean]>([
    ['the sum of the containers', [one, one], [], false],
    ['too large a sum', [one, two], [], true],
    ['an init container beside a smaller sum', [one], [two], false],
    ['too large an init container', [one], [{ request: '3', limit: '3' }], true],
    ['init containers one after the other', [one], [two, two], false],
    ['a sidecar, which runs on', [one], [sidecar], false],
    ['a sidecar and too large a sum', [two], [sidecar], true],
    ['an init container after a sidecar', [one], [sidecar, two], true],
    ['an init container before a sidecar', [one], [two, sidecar], false],
  ])('%s', (_what, containers, initContainers, expected) => {
    const range = items('Pod', { max: { cpu: '2' } });
    expect(exceedsLimitRange(range, shape(containers, initContainers))).toBe(expected);
  });
});

describe('addsDefaults', () => {
  const complete = { request: '1', limit: '1' };

  it.each<[string, string, object, readonly Given[], boolean]>([
    ['a limit that is missing', 'Container', { default: { cpu: '1' } }, [{ request: '1' }], true],
    ['a limit that is there', 'Container', { default: { cpu: '2' } }, [complete], false],
    [
      'a request that is missing',
      'Container',
      { defaultRequest: { cpu: '1' } },
      [{ limit: '1' }],
      true,
    ],
    ['memory that is missing', 'Container', { default: { memory: '1Gi' } }, [complete], true],
    [
      'what no resize can change',
      'Container',
      { default: { 'ephemeral-storage': '1Gi' } },
      [complete],
      false,
    ],
    [
      'a default for pods, which does nothing',
      'Pod',
      { default: { cpu: '1' } },
      [{ request: '1' }],
      false,
    ],
    [
      'the second container',
      'Container',
      { default: { cpu: '1' } },
      [complete, { request: '1' }],
      true,
    ],
  ])('%s', (_what, type, item, containers, expected) => {
    expect(addsDefaults(items(type, item), shape(containers))).toBe(expected);
  });
});

describe('readLimitRange', () => {
  it.each([
    undefined,
    null,
    7,
    'x',
    [],
    {},
    { spec: { limits: 'x' } },
    { spec: { limits: [null, 7, {}, { type: 'PersistentVolumeClaim' }] } },
  ])('finds nothing in %j', (value) => {
    expect(readLimitRange(value)).toEqual([]);
  });

  it('takes values of the wrong kind for absent', () => {
    const range = items('Container', {
      max: 'x',
      min: { cpu: 'lots' },
      default: [],
      defaultRequest: { cpu: 1 },
    });
    expect(exceedsLimitRange(range, shape([{}]))).toBe(false);
    expect(addsDefaults(range, shape([{}]))).toBe(false);
  });
});
