import { describe, expect, it } from '@jest/globals';
import type { ApiFailure, JsonObject } from '../../../src/kube';
import { INITIAL_WATCH_STATE, backoffMs, stepWatch } from '../../../src/kube/watch';
import type { WatchInput, WatchState } from '../../../src/kube/watch';

function pod(name: string, resourceVersion: string): JsonObject {
  return { metadata: { name, uid: `uid-${name}`, resourceVersion } };
}

type FailureKind = 'Server' | 'Gone' | 'Network' | 'Timeout';

function failure(kind: FailureKind, retryAfterMs?: number): ApiFailure {
  const common = { request: 'LIST pods', message: '', source: undefined };
  switch (kind) {
    case 'Network':
    case 'Timeout':
      return { kind, ...common };
    case 'Gone':
      return { kind, ...common, status: 410, reason: 'Expired' };
    case 'Server':
      return retryAfterMs === undefined
        ? { kind, ...common, status: 500, reason: '' }
        : { kind, ...common, status: 500, reason: '', retryAfterMs };
  }
}

function failed(of: ApiFailure, livedMs = 0, random = 0): WatchInput {
  return { kind: 'Failed', failure: of, livedMs, random };
}

function closed(livedMs: number): WatchInput {
  return { kind: 'Closed', livedMs, random: 0 };
}

const empty: WatchState = INITIAL_WATCH_STATE;
const watching: WatchState = { kind: 'Watching', failures: 0, resourceVersion: '10' };
const listing: WatchState = {
  kind: 'Listing',
  failures: 0,
  items: [pod('a', '1')],
  continueToken: 'next',
};
const checking: WatchState = { kind: 'Checking', failures: 0, resourceVersion: '10', items: [] };

describe('a watch that knows nothing', () => {
  it('takes a single page over and watches from its version', () => {
    const page = { items: [pod('a', '1')], resourceVersion: '9' };
    expect(stepWatch(empty, { kind: 'PageListed', page })).toEqual({
      state: { kind: 'Watching', failures: 0, resourceVersion: '9' },
      change: { kind: 'Replaced', items: page.items, cause: 'Listed' },
    });
  });

  it('changes nothing before the last page is in', () => {
    const page = { items: [pod('a', '1')], resourceVersion: '9', continue: 'next' };
    expect(stepWatch(empty, { kind: 'PageListed', page })).toEqual({ state: listing });
  });

  it('takes all pages over at once with the last one', () => {
    const page = { items: [pod('b', '2')], resourceVersion: '9' };
    expect(stepWatch(listing, { kind: 'PageListed', page })).toEqual({
      state: { kind: 'Watching', failures: 0, resourceVersion: '9' },
      change: { kind: 'Replaced', items: [pod('a', '1'), pod('b', '2')], cause: 'Listed' },
    });
  });

  it('goes on with the failed page after a server error', () => {
    expect(stepWatch(listing, failed(failure('Server'))).state).toEqual({
      kind: 'BackingOff',
      ms: 400,
      then: { ...listing, failures: 1 },
    });
  });

  it('starts over when the continue token is too old', () => {
    expect(stepWatch(listing, failed(failure('Gone'))).state).toEqual({
      kind: 'BackingOff',
      ms: 400,
      then: { kind: 'Empty', failures: 1 },
    });
  });

  it('takes an absent collection for an empty one and asks again slowly', () => {
    expect(stepWatch(empty, { kind: 'CollectionAbsent' })).toEqual({
      state: { kind: 'BackingOff', ms: 30_000, then: empty },
      change: { kind: 'Replaced', items: [], cause: 'Absent' },
    });
  });
});

describe('a running watch', () => {
  it.each(['ADDED', 'MODIFIED'] as const)('hands an object that was %s on', (type) => {
    const object = pod('a', '11');
    expect(stepWatch(watching, { kind: 'EventRead', event: { type, object } })).toEqual({
      state: { ...watching, resourceVersion: '11' },
      change: { kind: 'Upserted', object },
    });
  });

  it('hands a deletion on', () => {
    const event = { type: 'DELETED' as const, object: pod('a', '12') };
    expect(stepWatch(watching, { kind: 'EventRead', event })).toEqual({
      state: { ...watching, resourceVersion: '12' },
      change: { kind: 'Removed', object: event.object },
    });
  });

  it('only moves its version at a bookmark', () => {
    const event = { type: 'BOOKMARK' as const, object: { metadata: { resourceVersion: '40' } } };
    expect(stepWatch(watching, { kind: 'EventRead', event })).toEqual({
      state: { ...watching, resourceVersion: '40' },
    });
  });

  it('keeps its version at a bookmark without one', () => {
    const event = { type: 'BOOKMARK' as const, object: {} };
    expect(stepWatch(watching, { kind: 'EventRead', event })).toEqual({ state: watching });
  });

  it('opens again at once when the server closed it after its time', () => {
    expect(stepWatch({ ...watching, failures: 3 }, closed(240_000)).state).toEqual(watching);
  });

  it('backs off when the server closes it at once, so that it never spins', () => {
    expect(stepWatch(watching, closed(20)).state).toEqual({
      kind: 'BackingOff',
      ms: 400,
      then: { ...watching, failures: 1 },
    });
  });

  it('resumes from its version after a broken connection', () => {
    expect(stepWatch(watching, failed(failure('Network'))).state).toMatchObject({
      then: { kind: 'Watching', resourceVersion: '10' },
    });
  });

  it('lists anew when its version is too old', () => {
    expect(stepWatch(watching, failed(failure('Gone'))).state).toMatchObject({
      then: { kind: 'Empty' },
    });
  });

  it('lists anew after five failures in a row that the server has answered', () => {
    const state = { ...watching, failures: 4 };
    expect(stepWatch(state, failed(failure('Server'))).state).toMatchObject({
      then: { kind: 'Empty', failures: 5 },
    });
  });

  it('counts failures from one again after it worked a while', () => {
    const state = { ...watching, failures: 4 };
    expect(stepWatch(state, failed(failure('Network'), 60_000)).state).toMatchObject({
      ms: 400,
      then: { kind: 'Watching', failures: 1 },
    });
  });

  it('waits at least as long as the server asks', () => {
    expect(stepWatch(watching, failed(failure('Server', 9_000))).state).toMatchObject({
      ms: 9_000,
    });
  });
});

describe('a check of a running watch', () => {
  it('starts at the version that the watch has reached', () => {
    expect(stepWatch(watching, { kind: 'CheckDue' })).toEqual({ state: checking });
  });

  it('gathers pages and goes on watching from the same version', () => {
    const first = stepWatch(checking, {
      kind: 'PageListed',
      page: { items: [pod('a', '1')], resourceVersion: '10', continue: 'next' },
    });
    expect(first.change).toBeUndefined();
    const second = stepWatch(first.state, {
      kind: 'PageListed',
      page: { items: [pod('b', '2')], resourceVersion: '10' },
    });
    expect(second).toEqual({
      state: watching,
      change: { kind: 'Replaced', items: [pod('a', '1'), pod('b', '2')], cause: 'Checked' },
    });
  });

  it('is given up after a server error, not the watch', () => {
    expect(stepWatch(checking, failed(failure('Server'))).state).toMatchObject({
      then: { kind: 'Watching', resourceVersion: '10' },
    });
  });

  it('becomes a new list when the version is compacted', () => {
    expect(stepWatch(checking, failed(failure('Gone'))).state).toMatchObject({
      then: { kind: 'Empty' },
    });
  });
});

describe('the waits of a watch', () => {
  it('double up to half a minute', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 60].map((failures) => backoffMs(failures, 0.999_999));
    expect(waits.map(Math.round)).toEqual([
      800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000,
    ]);
  });

  it.each(['Network', 'Timeout'] as const)(
    'stay short while nobody answers (%s), and do not lengthen those for what is answered then',
    (kind) => {
      let state: WatchState = watching;
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const { state: pause } = stepWatch(state, failed(failure(kind), 0, 0.999_999));
        expect(pause).toMatchObject({ kind: 'BackingOff', then: watching });
        if (pause.kind === 'BackingOff') expect(Math.round(pause.ms)).toBe(2_000);
        state = stepWatch(pause, { kind: 'Slept' }).state;
      }
      expect(stepWatch(state, failed(failure('Gone'))).state).toMatchObject({
        ms: 400,
        then: { kind: 'Empty', failures: 1 },
      });
    },
  );

  it('grow where each new list is too old at once', () => {
    let state: WatchState = watching;
    const waits: number[] = [];
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const { state: pause } = stepWatch(state, failed(failure('Gone')));
      if (pause.kind === 'BackingOff') waits.push(pause.ms);
      const page = { items: [], resourceVersion: '10' };
      state = stepWatch(stepWatch(pause, { kind: 'Slept' }).state, {
        kind: 'PageListed',
        page,
      }).state;
    }
    expect(waits).toEqual([400, 800, 1_600, 3_200]);
  });

  it('are never shorter than half of that', () => {
    expect(backoffMs(1, 0)).toBe(400);
    expect(backoffMs(60, 0)).toBe(15_000);
  });

  it('end in the state that they were for', () => {
    const state: WatchState = { kind: 'BackingOff', ms: 1, then: watching };
    expect(stepWatch(state, { kind: 'Slept' })).toEqual({ state: watching });
  });
});

describe('an input that the state does not expect', () => {
  const inputs: readonly WatchInput[] = [
    { kind: 'Slept' },
    { kind: 'CheckDue' },
    { kind: 'EventRead', event: { type: 'ADDED', object: pod('x', '1') } },
    { kind: 'PageListed', page: { items: [], resourceVersion: '1' } },
    { kind: 'CollectionAbsent' },
    closed(0),
    // Changes nothing anywhere: the stream is opened from the version that it has reached.
    { kind: 'Reopened' },
  ];
  it.each([
    ['Empty', empty, [0, 1, 2, 5, 6]],
    ['Listing', listing, [0, 1, 2, 5, 6]],
    ['Watching', watching, [0, 3, 4, 6]],
    ['Checking', checking, [0, 1, 2, 4, 5, 6]],
    ['BackingOff', { kind: 'BackingOff', ms: 1, then: watching } as const, [1, 2, 3, 4, 5, 6]],
  ])('changes nothing in %s', (_, state, unexpected) => {
    for (const input of inputs.filter((_input, index) => unexpected.includes(index))) {
      expect(stepWatch(state, input)).toEqual({ state });
    }
  });
});
