/** The record on the pod: our own, those of google/kube-startup-cpu-boost, and what strangers write. */
import { describe, expect, it } from '@jest/globals';
import { formatRecord, parseRecord, tellsBoostedValues } from '../../../src/boost-engine/record';
import type { BoostRecord } from '../../../src/boost-engine/record';

const ours = {
  state: 'Active',
  timestamp: '2026-06-01T12:00:00.000Z',
  initCPURequests: { app: '250m' },
  initCPULimits: { app: '1', web: '500m' },
  boostedCPURequests: { app: '500m' },
  boostedCPULimits: { app: '2', web: '1' },
  uid: '2f9c',
  generation: 3,
};

function read(value: unknown): BoostRecord {
  const parsed = parseRecord(typeof value === 'string' ? value : JSON.stringify(value));
  if (parsed.kind !== 'Record') throw new Error(parsed.why);
  return parsed.record;
}

describe('parseRecord', () => {
  it('reads our own record', () => {
    expect(read(ours)).toEqual({
      state: 'Active',
      timestamp: '2026-06-01T12:00:00.000Z',
      uid: '2f9c',
      generation: 3,
      containers: new Map([
        [
          'app',
          { original: { request: '250m', limit: '1' }, boosted: { request: '500m', limit: '2' } },
        ],
        ['web', { original: { limit: '500m' }, boosted: { limit: '1' } }],
      ]),
    });
  });

  it("reads upstream's record: originals only, and in old versions no state", () => {
    const record = read(
      '{"timestamp":"2024-03-01T10:00:00Z","initCPURequests":{"app":"500m"},"initCPULimits":null}',
    );
    expect(record.state).toBe('Active');
    expect(record.containers).toEqual(
      new Map([['app', { original: { request: '500m' }, boosted: {} }]]),
    );
    expect(tellsBoostedValues(record)).toBe(false);
    expect(tellsBoostedValues(read(ours))).toBe(true);
  });

  it.each(['Active', 'Pending', 'Reverted', 'Infeasible'])('knows the state %s', (state) => {
    expect(read({ ...ours, state }).state).toBe(state);
  });

  it('reads an original that no pod can have as the API server would store it', () => {
    const { containers } = read('{"initCPURequests":{"app":"499500u","web":"0.25"}}');
    expect(containers.get('app')?.original).toEqual({ request: '500m' });
    expect(containers.get('web')?.original).toEqual({ request: '0.25' });
  });

  it('finds a container of any name, and no other', () => {
    const { containers } = read('{"initCPURequests":{"__proto__":"1","constructor":"2"}}');
    expect([...containers.keys()]).toEqual(['__proto__', 'constructor']);
    expect(containers.get('toString')).toBeUndefined();
  });

  it('ignores what only explains when it is of the wrong kind', () => {
    expect(read({ ...ours, uid: 7, timestamp: {}, generation: 'x', more: [1] })).toMatchObject({
      uid: undefined,
      timestamp: undefined,
      generation: undefined,
    });
  });

  it.each<[string, string]>([
    ['', 'JSON object'],
    ['boosted', 'JSON object'],
    ['{', 'JSON object'],
    ['null', 'JSON object'],
    ['7', 'JSON object'],
    ['"text"', 'JSON object'],
    ['[]', 'JSON object'],
    ['{"state":"active"}', 'state'],
    ['{"state":"Unknown"}', 'state'],
    ['{"state":7}', 'state'],
    ['{"state":{"Active":1}}', 'state'],
    ['{"initCPURequests":"1"}', 'initCPURequests'],
    ['{"initCPURequests":[]}', 'initCPURequests'],
    ['{"initCPULimits":{"app":1}}', 'initCPULimits'],
    ['{"initCPULimits":{"app":null}}', 'initCPULimits'],
    ['{"initCPULimits":{"app":["1"]}}', 'initCPULimits'],
    ['{"boostedCPURequests":{"app":""}}', 'boostedCPURequests'],
    ['{"boostedCPURequests":{"app":null}}', 'boostedCPURequests'],
    ['{"boostedCPULimits":{"app":"lots"}}', 'boostedCPULimits'],
    ['{"initCPURequests":{"app":"-1"}}', 'initCPURequests'],
  ])('cannot read %s', (text, why) => {
    expect(parseRecord(text)).toEqual({ kind: 'Unreadable', why: expect.stringContaining(why) });
  });

  it('does not read a record of more than 64 KiB', () => {
    const text = JSON.stringify({ ...ours, pad: '' });
    expect(parseRecord(text.replace('""', `"${'x'.repeat(64 * 1024 - text.length)}"`)).kind).toBe(
      'Record',
    );
    expect(parseRecord(text.replace('""', `"${'x'.repeat(64 * 1024)}"`)).kind).toBe('Unreadable');
  });

  it('gives an answer for JSON as deep as a record can be long', () => {
    const deep = '['.repeat(30_000) + ']'.repeat(30_000);
    expect(parseRecord(deep).kind).toBe('Unreadable');
    expect(parseRecord(`{"state":${deep}}`).kind).toBe('Unreadable');
    expect(parseRecord(`{"initCPURequests":{"app":${deep}}}`).kind).toBe('Unreadable');
    expect(parseRecord('{"a":'.repeat(10_000)).kind).toBe('Unreadable');
  });
});

describe('formatRecord', () => {
  it('writes what parseRecord reads', () => {
    expect(JSON.parse(formatRecord(read(ours)))).toEqual(ours);
  });

  it('leaves out keys without a value', () => {
    const record = read({ initCPURequests: { app: '1' } });
    expect(JSON.parse(formatRecord(record))).toEqual({
      state: 'Active',
      initCPURequests: { app: '1' },
    });
  });
});
