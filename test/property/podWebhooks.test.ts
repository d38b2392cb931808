/** The stop mark on any webhook configuration. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isStopped, stopPatch, timeoutOf, undoPatch } from '../../src/controller/podWebhooks';
import { applied } from '../support/engineLaws';

const conditions = fc.uniqueArray(
  fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), expression: fc.constant('true') }),
  { selector: ({ name }) => name, maxLength: 4 },
);

const ours = fc.record(
  {
    name: fc.constant('cpuboost.autoscaling.x-k8s.io'),
    clientConfig: fc.constantFrom(
      { service: { path: '/mutate-v1-pod' } },
      { url: 'https://127.0.0.1:9443/mutate-v1-pod' },
    ),
    timeoutSeconds: fc.integer({ min: 1, max: 30 }),
    matchConditions: conditions,
  },
  { requiredKeys: ['name', 'clientConfig'] },
);
const others = fc.array(
  fc.record({ name: fc.stringMatching(/^[a-z]{1,8}\.example\.com$/), matchConditions: conditions }),
  { maxLength: 3 },
);

const configuration = fc.tuple(others, ours, others).map(([before, own, after]) => ({
  metadata: { name: 'c', uid: 'u' },
  webhooks: [...before, own, ...after],
}));

describe('the stop mark', () => {
  // An undo that touched anything else would let an emergency change what it must not.
  it('comes and goes, and leaves everything else as it was', () => {
    fc.assert(
      fc.property(configuration, (before) => {
        const stopped = applied(before, stopPatch(before));
        expect(isStopped(stopped)).toBe(true);
        expect(stopPatch(stopped)).toEqual([]);
        const undone = applied(stopped, undoPatch(stopped));
        expect(isStopped(undone)).toBe(false);
        expect(withoutEmptyConditions(undone)).toEqual(withoutEmptyConditions(before));
      }),
    );
  });

  // Whoever may write configurations must not be able to end the controller with one.
  it('is looked for without an error in anything', () => {
    fc.assert(
      fc.property(fc.object({ key: fc.constantFrom('webhooks', 'name', 'metadata') }), (junk) => {
        expect([isStopped(junk), timeoutOf(junk)]).toEqual([false, undefined]);
        expect([...stopPatch(junk), ...undoPatch(junk)]).toEqual([]);
      }),
    );
  });
});

/** A list that is empty now was absent before. */
function withoutEmptyConditions({ webhooks, ...rest }: Record<string, unknown>): unknown {
  const list = Array.isArray(webhooks) ? webhooks : [];
  return {
    ...rest,
    webhooks: list.map((webhook: Record<string, unknown>) => {
      const { matchConditions = [], ...others } = webhook;
      return { ...others, matchConditions };
    }),
  };
}
