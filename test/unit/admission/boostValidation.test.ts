import { describe, expect, it } from '@jest/globals';
import { validateBoost } from '../../../src/admission/boostValidation';
import type { Ruling } from '../../../src/admission/ruling';
import { compileBoost } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { aBoost, aPod, untilSeconds } from '../../support/builders';
import { aBoostReview, aReview, requestOf } from './reviews';

const badPattern = {
  matchContainers: { type: 'RegexName', value: '^app(' },
  percentageIncrease: { value: 100 },
};

function judge(request: JsonObject): Ruling {
  return validateBoost(requestOf(aBoostReview(request)), []);
}

describe('a boost that could not work', () => {
  const object = aBoost({ containerPolicies: [badPattern, {}], durationPolicy: {} });

  it('is refused with every issue and where it is', () => {
    const { answer, note } = judge({ object });
    expect(answer.allowed).toBe(false);
    expect(answer.status).toMatchObject({ code: 422, reason: 'Invalid' });
    const message = answer.status?.message ?? '';
    const path = 'spec.resourcePolicy.containerPolicies';
    expect(message).toContain(`${path}[0].matchContainers.value `);
    expect(message).toContain(`${path}[1] `);
    expect(message).toContain('spec.durationPolicy ');
    expect(note).toMatchObject({
      level: 'info',
      result: 'Refused',
      fields: { namespace: 'default', boost: 'boost', operation: 'CREATE' },
    });
  });

  it('is refused as an update of one that could', () => {
    expect(judge({ operation: 'UPDATE', object, oldObject: aBoost() }).answer.allowed).toBe(false);
  });

  it.each([null, 7, [], {}])('is refused where it is no boost at all: %j', (value) => {
    expect(judge({ object: value }).answer.allowed).toBe(false);
  });
});

describe('a stored boost that today would be refused', () => {
  const oldObject = aBoost({ containerPolicies: [badPattern] });

  it('takes a label, with a warning that it is ignored', () => {
    const object = aBoost({
      containerPolicies: [badPattern],
      metadata: { labels: { team: 'web' } },
    });
    const { answer } = judge({ operation: 'UPDATE', object, oldObject });
    expect(answer.allowed).toBe(true);
    expect(answer.warnings).toEqual([
      expect.stringContaining(
        'the boost is ignored: spec.resourcePolicy.containerPolicies[0].matchContainers.value',
      ),
    ]);
  });

  it('takes no further mistake, and is told of the new one only', () => {
    const object = aBoost({ containerPolicies: [badPattern], durationPolicy: {} });
    const { answer } = judge({ operation: 'UPDATE', object, oldObject });
    expect(answer.allowed).toBe(false);
    expect(answer.status?.message).toMatch(/^spec\.durationPolicy [^;]+$/);
  });
});

describe('a boost that works', () => {
  it('is accepted', () => {
    const { answer, note } = judge({ object: aBoost() });
    expect(answer).toEqual({ allowed: true, warnings: [] });
    expect(note).toMatchObject({ level: 'info', result: 'Accepted' });
  });

  it('comes with the warnings of the review', () => {
    const policy = { containerName: 'app', percentageIncrease: { value: 100 } };
    const { answer } = judge({ object: aBoost({ containerPolicies: [policy] }) });
    expect(answer.warnings).toEqual([expect.stringContaining('containerName is deprecated')]);
  });

  it('is told of another boost for the same pods, not of its own older state', () => {
    const request = requestOf(
      aBoostReview({
        operation: 'UPDATE',
        object: aBoost({ durationPolicy: untilSeconds(60) }),
        oldObject: aBoost(),
      }),
    );
    const others = [compileBoost(aBoost()), compileBoost(aBoost({ name: 'twin' }))];
    expect(validateBoost(request, others).answer.warnings).toEqual([
      expect.stringContaining('boost twin selects the same pods'),
    ]);
  });

  it('is not logged as done in a dry run', () => {
    const { answer, note } = judge({ object: aBoost(), dryRun: true });
    expect(answer.allowed).toBe(true);
    expect(note).toMatchObject({ level: 'debug', result: 'DryRun' });
  });
});

describe('a review that is not about a new or changed boost', () => {
  it.each<[string, JsonObject]>([
    ['a deletion', aBoostReview({ operation: 'DELETE', object: null, oldObject: aBoost() })],
    ['the status', aBoostReview({ operation: 'UPDATE', subResource: 'status', object: {} })],
    ['a pod', aReview({ object: aPod() })],
  ])('is allowed: %s', (_what, review) => {
    expect(validateBoost(requestOf(review), []).answer).toEqual({
      allowed: true,
      status: { code: 200, message: 'allowed: only new and changed boosts are reviewed' },
    });
  });
});
