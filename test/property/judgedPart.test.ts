/** What the cache keeps of a pod is judged like the whole pod. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fieldsOf, readPod } from '../../src/boost-engine';
import { judgedPartOf } from '../../src/controller/judgedPart';
import { damaged, pod, progress, stored } from '../support/engineArbitraries';
import { runs } from '../support/fuzzing';
import { objectAt } from '../support/objectAt';

const more = fc.record(
  {
    priority: fc.integer(),
    priorityClassName: fc.constantFrom('', 'high'),
    preemptionPolicy: fc.constantFrom('Never', 'PreemptLowerPriority'),
    activeDeadlineSeconds: fc.nat(),
  },
  { requiredKeys: [] },
);

const whole = fc.tuple(pod, progress, more).map(([created, since, fields]) => {
  const object = stored(created, since);
  const metadata = { ...objectAt(object, 'metadata'), resourceVersion: '7' };
  return { ...object, metadata, spec: { ...objectAt(object, 'spec'), ...fields } };
});

describe('the judged part of a pod', () => {
  // A field that the engine reads and the cache drops would change decisions without an error.
  it('reads like the whole pod, whatever is wrong with it', () => {
    fc.assert(
      fc.property(fc.oneof(whole, damaged(whole)), (object) => {
        const part = judgedPartOf(Object.fromEntries(fieldsOf(object)));
        expect(readPod(part)).toEqual(readPod(object));
      }),
      runs(),
    );
  });
});
