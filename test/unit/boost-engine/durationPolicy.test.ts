/** When a boost ends: by condition, by time, by whichever comes first, and never without an end. */
import { describe, expect, it } from '@jest/globals';
import { boostEnd, describeDuration } from '../../../src/boost-engine/durationPolicy';
import type { BoostEnd, DurationPolicy } from '../../../src/boost-engine/durationPolicy';
import { readPod } from '../../../src/boost-engine/pod';
import type { JsonObject } from '../../../src/kube';
import { aPod } from '../../support/builders';

const SCHEDULED = Date.parse('2026-06-01T12:00:00Z');
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const settings = { maximumBoostMs: 60 * MINUTE, unschedulableGraceMs: 500 };

const at = (ms: number) => new Date(ms).toISOString();
const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: at(SCHEDULED) };
const ready = { type: 'Ready', status: 'True', lastTransitionTime: at(SCHEDULED) };
const notReady = { ...ready, status: 'False' };

function end(
  conditions: readonly JsonObject[],
  duration: DurationPolicy | undefined,
  now: number,
  more: { readonly metadata?: JsonObject; readonly spec?: JsonObject } = {},
): BoostEnd {
  const pod = aPod({ status: { conditions }, spec: { nodeName: 'node' }, ...more });
  return boostEnd(readPod(pod), duration, settings, now);
}

const condition: DurationPolicy = { podCondition: { type: 'Ready', status: 'True' } };
const fixed: DurationPolicy = { fixed: { value: 60, unit: 'Seconds' } };
const both: DurationPolicy = { ...condition, ...fixed };

describe('boostEnd of a scheduled pod', () => {
  const fixedEnd = SCHEDULED + MINUTE;
  const maximumEnd = SCHEDULED + 60 * MINUTE;
  const met: BoostEnd = { kind: 'Ended', reason: 'ConditionMet' };
  const elapsed: BoostEnd = { kind: 'Ended', reason: 'DurationElapsed', at: fixedEnd };
  const maximum: BoostEnd = { kind: 'Ended', reason: 'MaximumElapsed', at: maximumEnd };
  const until = (ms: number): BoostEnd => ({ kind: 'NotYet', until: ms });

  it.each<[string, DurationPolicy | undefined, JsonObject, number, BoostEnd]>([
    ['condition, not met', condition, notReady, SCHEDULED, until(maximumEnd)],
    ['condition, met', condition, ready, SCHEDULED, met],
    [
      'condition, not met, just before the maximum',
      condition,
      notReady,
      maximumEnd - 1,
      until(maximumEnd),
    ],
    ['condition, not met, at the maximum', condition, notReady, maximumEnd, maximum],
    ['fixed, at the start', fixed, ready, SCHEDULED, until(fixedEnd)],
    ['fixed, just before its end', fixed, ready, fixedEnd - 1, until(fixedEnd)],
    ['fixed, at its end', fixed, ready, fixedEnd, elapsed],
    ['fixed, long after', fixed, ready, maximumEnd + 1, elapsed],
    ['both, nothing met', both, notReady, SCHEDULED, until(fixedEnd)],
    ['both, condition first', both, ready, SCHEDULED, met],
    ['both, time first', both, notReady, fixedEnd, elapsed],
    ['both, at one moment', both, ready, fixedEnd, met],
    ['unknown, ready', undefined, ready, SCHEDULED, until(maximumEnd)],
    ['unknown, at the maximum', undefined, ready, maximumEnd, maximum],
    [
      'in minutes',
      { fixed: { value: 2, unit: 'Minutes' } },
      ready,
      SCHEDULED,
      until(SCHEDULED + 2 * MINUTE),
    ],
    [
      'longer than the maximum',
      { fixed: { value: 61, unit: 'Minutes' } },
      ready,
      SCHEDULED,
      until(maximumEnd),
    ],
    [
      'longer than any clock',
      { fixed: { value: Number.MAX_SAFE_INTEGER, unit: 'Minutes' } },
      ready,
      SCHEDULED,
      until(maximumEnd),
    ],
    ['a clock behind the API server', fixed, ready, SCHEDULED - MINUTE, until(fixedEnd)],
  ])('%s', (_what, duration, readiness, now, expected) => {
    expect(end([scheduled, readiness], duration, now)).toEqual(expected);
  });

  it.each<['True' | 'False' | 'Unknown', JsonObject[], boolean]>([
    ['True', [ready], true],
    ['True', [notReady], false],
    ['False', [notReady], true],
    ['Unknown', [{ ...ready, status: 'Unknown' }], true],
    // A condition that nobody has written yet is not a condition with the status Unknown.
    ['Unknown', [], false],
    ['False', [], false],
    ['True', [{ type: 'ready', status: 'True' }], false],
    ['True', [{ type: 'Ready', status: 'true' }], false],
    ['True', [{ type: 'Ready', status: true }], false],
  ])('a condition that has to be %s with %j: ended %s', (status, conditions, expected) => {
    const duration: DurationPolicy = { podCondition: { type: 'Ready', status } };
    expect(end([scheduled, ...conditions], duration, SCHEDULED).kind === 'Ended').toBe(expected);
  });
});

describe('boostEnd of a pod that is not scheduled', () => {
  const CREATED = SCHEDULED - MINUTE;
  const SINCE = CREATED + 10 * SECOND;
  const waiting = (message: string) => ({
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastTransitionTime: at(SINCE),
  });
  const lacking = waiting('0/3 nodes are available: 3 Insufficient cpu.');
  const pending = { metadata: { creationTimestamp: at(CREATED) }, spec: {} };
  const maximumEnd = CREATED + 60 * MINUTE;

  it.each<[string, readonly JsonObject[], number, BoostEnd]>([
    ['seen by nobody', [], CREATED, { kind: 'NotYet', until: maximumEnd }],
    ['fixed time does not run', [], CREATED + 30 * MINUTE, { kind: 'NotYet', until: maximumEnd }],
    ['at the maximum', [], maximumEnd, { kind: 'Ended', reason: 'Unschedulable', at: maximumEnd }],
    ['no room, within the grace', [lacking], SINCE + 499, { kind: 'NotYet', until: SINCE + 500 }],
    [
      'no room, grace over',
      [lacking],
      SINCE + 500,
      { kind: 'Ended', reason: 'Unschedulable', at: SINCE + 500 },
    ],
    [
      'waiting for something else',
      [waiting('3 node(s) had untolerated taint')],
      SINCE + MINUTE,
      { kind: 'NotYet', until: maximumEnd },
    ],
  ])('%s', (_what, conditions, now, expected) => {
    expect(end(conditions, both, now, pending)).toEqual(expected);
  });

  it('ends by its condition all the same', () => {
    expect(end([ready], both, CREATED, pending)).toEqual({ kind: 'Ended', reason: 'ConditionMet' });
  });

  it('does not end for want of a node once it has one, whatever the condition still says', () => {
    const bound = { metadata: pending.metadata };
    expect(end([lacking], both, SINCE + MINUTE, bound)).toEqual({
      kind: 'NotYet',
      until: maximumEnd,
    });
  });

  it.each([undefined, null, '', 'soon', 7])(
    'ends at the maximum when the time of its scheduling is %j',
    (lastTransitionTime) => {
      const unclear = { type: 'PodScheduled', status: 'True', lastTransitionTime };
      const bound = { metadata: pending.metadata };
      expect(end([unclear], fixed, CREATED, bound)).toEqual({ kind: 'NotYet', until: maximumEnd });
      expect(end([unclear], fixed, maximumEnd, bound)).toMatchObject({ kind: 'Ended' });
    },
  );
});

describe('describeDuration', () => {
  it.each<[DurationPolicy, string]>([
    [condition, 'Ready'],
    [{ podCondition: { type: 'Ready', status: 'False' } }, 'Ready=False'],
    [fixed, '60s'],
    [{ fixed: { value: 2, unit: 'Minutes' } }, '2m'],
    [both, 'Ready|60s'],
    [{}, ''],
  ])('%j as %j', (duration, expected) => {
    expect(describeDuration(duration)).toBe(expected);
  });
});
