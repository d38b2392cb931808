import { describe, expect, it } from '@jest/globals';
import { failureAction } from '../../../src/kube';
import type { ApiFailure, FailureAction } from '../../../src/kube';
import { failureOfAnswer } from '../../../src/kube/apiFailure';
import type { FailedAnswer } from '../../../src/kube/apiFailure';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function failureOf(
  status: number,
  body: unknown,
  rest: Partial<Pick<FailedAnswer, 'retryAfter' | 'sent'>> = {},
): ApiFailure {
  return failureOfAnswer({
    request: 'PATCH pods/resize shop/web',
    status,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    now: NOW,
    sent: 'Other',
    ...rest,
  });
}

const uidCause = { reason: 'FieldValueInvalid', field: 'metadata.uid', message: 'immutable' };
const cpuCause = { reason: 'FieldValueInvalid', field: 'spec.containers[0]', message: 'no' };
const terminating = { reason: 'NamespaceTerminating', field: 'metadata.namespace', message: '' };

interface Row {
  readonly title: string;
  readonly failure: ApiFailure;
  readonly kind: ApiFailure['kind'];
  readonly action: FailureAction;
}

const rows: readonly Row[] = [
  {
    title: 'an unknown token is tried again, since it may be rotating',
    failure: failureOf(401, { reason: 'Unauthorized' }),
    kind: 'Unauthorized',
    action: { kind: 'Retry' },
  },
  {
    title: 'a missing permission, a quota or a full node is terminal',
    failure: failureOf(403, { reason: 'Forbidden' }),
    kind: 'Forbidden',
    action: { kind: 'Terminal' },
  },
  {
    title: 'a write into a namespace that goes away is dropped',
    failure: failureOf(403, { reason: 'Forbidden', details: { causes: [terminating] } }),
    kind: 'Forbidden',
    action: { kind: 'Drop' },
  },
  {
    title: 'an object that is gone is dropped',
    failure: failureOf(404, { reason: 'NotFound' }),
    kind: 'NotFound',
    action: { kind: 'Drop' },
  },
  {
    title: 'a conflict is decided again',
    failure: failureOf(409, { reason: 'Conflict' }),
    kind: 'Conflict',
    action: { kind: 'Retry' },
  },
  {
    title: 'an object that somebody else created first is read again',
    failure: failureOf(409, { reason: 'AlreadyExists' }),
    kind: 'AlreadyExists',
    action: { kind: 'Retry' },
  },
  {
    title: 'an old version is read again',
    failure: failureOf(410, { reason: 'Expired' }),
    kind: 'Gone',
    action: { kind: 'Retry' },
  },
  {
    title: 'a refused value is terminal',
    failure: failureOf(422, { reason: 'Invalid', details: { causes: [cpuCause] } }),
    kind: 'Invalid',
    action: { kind: 'Terminal' },
  },
  {
    title: 'another uid means another object, which has its own key',
    failure: failureOf(422, { reason: 'Invalid', details: { causes: [uidCause] } }),
    kind: 'Invalid',
    action: { kind: 'Drop' },
  },
  {
    title: 'a JSON Patch that does not apply is decided again',
    failure: failureOf(422, { reason: 'Invalid' }, { sent: 'JsonPatch' }),
    kind: 'TestFailed',
    action: { kind: 'Retry' },
  },
  {
    title: 'a JSON Patch with a refused value is terminal',
    failure: failureOf(422, { details: { causes: [cpuCause] } }, { sent: 'JsonPatch' }),
    kind: 'Invalid',
    action: { kind: 'Terminal' },
  },
  {
    title: 'a throttled call waits as long as the server says',
    failure: failureOf(429, {}, { retryAfter: '7' }),
    kind: 'Throttled',
    action: { kind: 'Retry', afterMs: 7_000 },
  },
  {
    title: 'a server error without a time is tried again',
    failure: failureOf(500, 'boom'),
    kind: 'Server',
    action: { kind: 'Retry' },
  },
  {
    title: 'a server error with a time in the Status waits for it',
    failure: failureOf(504, { reason: 'Timeout', details: { retryAfterSeconds: 2 } }),
    kind: 'Server',
    action: { kind: 'Retry', afterMs: 2_000 },
  },
  {
    title: 'a request that makes no sense is terminal',
    failure: failureOf(415, { reason: 'UnsupportedMediaType' }),
    kind: 'BadRequest',
    action: { kind: 'Terminal' },
  },
  {
    title: 'a redirect, which no API server sends, is tried again',
    failure: failureOf(302, ''),
    kind: 'Malformed',
    action: { kind: 'Retry' },
  },
  {
    title: 'a broken connection is tried again',
    failure: { kind: 'Network', request: 'GET pods', message: 'reset', source: undefined },
    kind: 'Network',
    action: { kind: 'Retry' },
  },
  {
    title: 'a call that the caller ended is dropped',
    failure: { kind: 'Cancelled', request: 'GET pods', message: 'ended', source: undefined },
    kind: 'Cancelled',
    action: { kind: 'Drop' },
  },
];

describe('a failed call', () => {
  it.each(rows)('$title', ({ failure, kind, action }) => {
    expect(failure.kind).toBe(kind);
    expect(failureAction(failure)).toEqual(action);
  });

  it('keeps the status, the reason, the message and the whole Status', () => {
    const status = { kind: 'Status', reason: 'Conflict', message: 'object was modified', more: 1 };
    expect(failureOf(409, status)).toEqual({
      kind: 'Conflict',
      request: 'PATCH pods/resize shop/web',
      status: 409,
      reason: 'Conflict',
      message: 'object was modified',
      source: status,
    });
  });

  it('with a page of a proxy in place of a Status shows its first line', () => {
    const failure = failureOf(502, '<html>\n<body>bad gateway</body>');
    expect(failure).toMatchObject({ kind: 'Server', message: '<html>', reason: '' });
  });

  it('without any body still has a message', () => {
    expect(failureOf(503, '').message).toBe('status 503 without a message');
  });

  it.each([
    ['a date', new Date(NOW + 5_000).toUTCString(), 5_000],
    ['a date that is over', new Date(NOW - 5_000).toUTCString(), 0],
    ['an hour, which is cut to five minutes', '3600', 300_000],
    ['a word, which is ignored', 'soon', undefined],
  ])('reads a Retry-After that is %s', (_, retryAfter, expected) => {
    const action = failureAction(failureOf(429, {}, { retryAfter }));
    expect(action).toEqual(
      expected === undefined ? { kind: 'Retry' } : { kind: 'Retry', afterMs: expected },
    );
  });

  it.each([
    ['null', null],
    ['a list', []],
    ['causes that are no list', { details: { causes: 'x' } }],
    ['causes that are no objects', { details: { causes: [1, null] } }],
    ['fields of other types', { reason: 1, message: {}, details: [] }],
  ])('survives a Status that is %s', (_, body) => {
    expect(failureOf(422, body)).toMatchObject({ kind: 'Invalid', causes: [] });
  });
});
