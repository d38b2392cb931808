import { describe, expect, it } from '@jest/globals';
import { decodeReview, encodeReview } from '../../../src/admission/admissionReview';
import { aReview } from './reviews';

const UID = 'c1d3b2f0-0d0b-4f6f-8f5c-0d4d5b0c4a11';

describe('decodeReview', () => {
  it('reads what decisions need of a real review', () => {
    const object = { metadata: { name: 'app' } };
    expect(decodeReview(aReview({ object, dryRun: true, subResource: 'resize' }))).toEqual({
      kind: 'Review',
      request: {
        uid: UID,
        operation: 'CREATE',
        resource: { group: '', plural: 'pods' },
        subresource: 'resize',
        namespace: 'default',
        isDryRun: true,
        object,
        oldObject: null,
      },
    });
  });

  it.each([
    ['an older version', aReview({}, { apiVersion: 'admission.k8s.io/v1beta1' })],
    ['another kind', aReview({}, { kind: 'ConversionReview' })],
    ['no operation', aReview({ operation: undefined })],
    ['a resource as a text', aReview({ resource: 'pods' })],
  ])('says which uid a review that it cannot read has: %s', (_what, review) => {
    expect(decodeReview(review)).toEqual({
      kind: 'Malformed',
      uid: UID,
      why: expect.any(String),
    });
  });

  it.each([
    ['nothing', undefined],
    ['a list', [aReview()]],
    ['no request', aReview({}, { request: undefined })],
    ['no uid', aReview({ uid: undefined })],
    ['an empty uid', aReview({ uid: '' })],
    ['a number as uid', aReview({ uid: 7 })],
    ['an endless uid', aReview({ uid: 'a'.repeat(129) })],
  ])('has no uid for %s', (_what, review) => {
    expect(decodeReview(review)).toEqual({ kind: 'Malformed', why: expect.any(String) });
  });

  it('takes no field from a prototype', () => {
    const review: unknown = JSON.parse('{"__proto__": {"request": {"uid": "inherited"}}}');
    expect(decodeReview(review)).toMatchObject({ kind: 'Malformed' });
  });
});

describe('encodeReview', () => {
  it('writes a patch in base64 and says that it is one', () => {
    const patch = [{ op: 'add', path: '/metadata/labels', value: { team: 'ü' } }] as const;
    expect(encodeReview(UID, { allowed: true, patch })).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: {
        uid: UID,
        allowed: true,
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      },
    });
  });

  it('leaves out what is empty: a patchType without a patch is an error for the API server', () => {
    const answer = { allowed: true, patch: [], warnings: [], auditAnnotations: {} };
    expect(encodeReview(UID, answer)).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: UID, allowed: true },
    });
  });

  it('keeps status, warnings and audit annotations', () => {
    const answer = {
      allowed: false,
      status: { code: 422, reason: 'Invalid', message: 'spec.x must be y' },
      warnings: ['a', 'b'],
      auditAnnotations: { boost: 'web' },
    };
    expect(encodeReview(UID, answer)).toMatchObject({ response: { uid: UID, ...answer } });
  });
});
