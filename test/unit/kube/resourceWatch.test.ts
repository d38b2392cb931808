import { describe, expect, it } from '@jest/globals';
import { PODS, ResourceWatch } from '../../../src/kube';
import type {
  ApiFailure,
  JsonObject,
  ListPage,
  ResourceChange,
  ResourceWatchOptions,
  WatchEvent,
} from '../../../src/kube';
import { ManualClock, settled } from '../../support/manualClock';
import { ScriptedClient } from './scriptedClient';
import type { Script } from './scriptedClient';

const COMMON = { request: 'LIST pods', message: 'no answer', source: undefined };
const GONE: ApiFailure = {
  kind: 'Gone',
  request: 'WATCH pods',
  message: 'too old resource version',
  source: undefined,
  status: 410,
  reason: 'Expired',
};
const BROKEN: ApiFailure = {
  kind: 'Server',
  request: 'WATCH pods',
  message: 'boom',
  source: undefined,
  status: 500,
  reason: 'InternalError',
};
const MISSING: ApiFailure = { ...BROKEN, kind: 'NotFound', status: 404, reason: 'NotFound' };

function pod(name: string, resourceVersion: string, uid = `uid-${name}`): JsonObject {
  return { metadata: { name, namespace: 'shop', uid, resourceVersion } };
}

function page(resourceVersion: string, ...items: readonly JsonObject[]): ListPage {
  return { items, resourceVersion };
}

function event(type: WatchEvent['type'], object: JsonObject): WatchEvent {
  return { type, object };
}

interface Stage {
  readonly client: ScriptedClient;
  readonly clock: ManualClock;
  readonly watch: ResourceWatch;
  /** `ADDED web@1`, in the order of the handler's calls. */
  readonly seen: string[];
  readonly errors: string[];
}

function stage(script: Script, options: Partial<ResourceWatchOptions> = {}): Stage {
  const client = new ScriptedClient(script);
  const clock = new ManualClock();
  const seen: string[] = [];
  const errors: string[] = [];
  const ignore = (): void => undefined;
  const watch = new ResourceWatch({
    client,
    clock,
    logger: {
      debug: ignore,
      info: ignore,
      warn: ignore,
      error: (_fields, message) => errors.push(message),
    },
    resource: PODS,
    random: () => 0,
    onEvent: (change) => {
      seen.push(told(change));
    },
    ...options,
  });
  watch.start();
  return { client, clock, watch, seen, errors };
}

function told({ type, object }: ResourceChange): string {
  const { name, resourceVersion } = Object(object.metadata) as Record<string, string>;
  return `${type} ${name ?? ''}@${resourceVersion ?? ''}`;
}

describe('a resource watch', () => {
  it('lists all pages, tells of each object, then watches from the version of the list', async () => {
    const { client, watch, seen } = stage({
      lists: [{ ...page('5', pod('a', '1')), continue: 'next' }, page('5', pod('b', '2'))],
      streams: [[event('MODIFIED', pod('a', '6'))]],
    });
    await watch.synced;
    await settled();
    expect(seen).toEqual(['ADDED a@1', 'ADDED b@2', 'MODIFIED a@6']);
    expect(client.listed).toMatchObject([{ limit: 500 }, { limit: 500, continue: 'next' }]);
    expect(client.watched).toMatchObject([{ resourceVersion: '5', timeoutSeconds: 240 }]);
    expect(watch.isSynced).toBe(true);
    await watch.stop();
  });

  it('passes its selection to lists and streams', async () => {
    const selection = { namespace: 'shop', labelSelector: 'app=web', fieldSelector: 'spec.x=y' };
    const { client, watch } = stage({ lists: [page('5')] }, { selection });
    await watch.synced;
    await settled();
    expect(client.listed).toMatchObject([selection]);
    expect(client.watched).toMatchObject([selection]);
    await watch.stop();
  });

  it('is not synced and shows nothing before the last page', async () => {
    const { watch, seen } = stage({ lists: [{ ...page('5', pod('a', '1')), continue: 'next' }] });
    await settled();
    expect(watch.isSynced).toBe(false);
    expect(watch.cache.size).toBe(0);
    expect(seen).toEqual([]);
    await watch.stop();
  });

  it('has a change in its cache before the handler hears of it', async () => {
    const found: boolean[] = [];
    const { watch } = stage(
      { lists: [page('5', pod('a', '1'), pod('b', '2'))] },
      { onEvent: () => void found.push(watchOf.cache.get('shop', 'b') !== undefined) },
    );
    const watchOf = watch;
    await watch.synced;
    expect(found).toEqual([true, true]);
    await watch.stop();
  });

  it('resumes from the last event after the server closed the stream', async () => {
    const { client, clock, watch } = stage({
      lists: [page('5')],
      streams: [[event('BOOKMARK', { metadata: { resourceVersion: '8' } }), 'Closes']],
    });
    await clock.advance(400);
    expect(client.listed).toHaveLength(1);
    expect(client.watched.map(({ resourceVersion }) => resourceVersion)).toEqual(['5', '8']);
    await watch.stop();
  });

  it('lists anew after a 410 and tells of deletions and replacements that it missed', async () => {
    const { clock, watch, seen } = stage({
      lists: [
        page('5', pod('gone', '1'), pod('again', '2'), pod('same', '3')),
        page('20', pod('again', '19', 'uid-2'), pod('same', '3')),
      ],
      streams: [[{ fails: GONE }]],
    });
    await watch.synced;
    seen.length = 0;
    await clock.advance(400);
    expect(seen).toEqual(['DELETED gone@1', 'DELETED again@2', 'ADDED again@19']);
    expect(watch.stats()).toMatchObject({ relists: 1, drift: 0, objects: 2 });
    await watch.stop();
  });

  it('keeps the old picture while a new list is under way', async () => {
    const { clock, watch } = stage({
      lists: [page('5', pod('a', '1')), { ...page('20', pod('b', '2')), continue: 'next' }],
      streams: [[{ fails: GONE }]],
    });
    await clock.advance(10_000);
    expect(watch.cache.list()).toEqual([pod('a', '1')]);
    await watch.stop();
  });

  it('waits longer after each failure in a row and never gives up', async () => {
    const { client, clock, watch } = stage({
      lists: Array.from({ length: 50 }, () => ({ fails: BROKEN })),
    });
    await clock.advance(400 + 800);
    expect(client.listed).toHaveLength(3);
    await clock.advance(1_600);
    expect(client.listed).toHaveLength(4);
    await clock.advance(900_000);
    expect(client.listed).toHaveLength(51);
    await watch.stop();
  });

  it('does not spin when the server closes each stream at once', async () => {
    const { client, clock, watch } = stage({
      lists: [page('5'), page('6'), page('7')],
      streams: Array.from({ length: 30 }, () => ['Closes' as const]),
    });
    await clock.advance(10_000);
    expect(client.watched.length).toBeLessThan(10);
    await watch.stop();
  });

  it('breaks off a mute stream and opens it again', async () => {
    const { client, clock, watch } = stage({ lists: [page('5')] });
    await clock.advance(149_999);
    expect(client.watched).toHaveLength(1);
    expect(watch.stats().ageMs).toBe(149_999);
    await clock.advance(1);
    expect(client.watched).toHaveLength(2);
    expect(client.listed).toHaveLength(1);
    await watch.stop();
  });

  it('opens the stream anew on demand, at once and from where it was', async () => {
    const streams = [[event('ADDED', pod('a', '6'))], [event('ADDED', pod('b', '7'))]];
    const { client, watch, seen } = stage({ lists: [page('5')], streams });
    watch.reopen();
    await settled();
    expect(client.watched).toHaveLength(1);
    watch.reopen();
    await settled();
    expect(client.watched).toMatchObject([{ resourceVersion: '5' }, { resourceVersion: '6' }]);
    expect(seen).toEqual(['ADDED a@6', 'ADDED b@7']);
    expect(client.listed).toHaveLength(1);
    expect(watch.stats().failures).toBe(0);
    await watch.stop();
  });

  it('goes on after a handler that throws, and says so', async () => {
    const seen: string[] = [];
    const { watch, errors } = stage(
      { lists: [page('5', pod('a', '1'), pod('b', '2'))] },
      {
        onEvent: (change) => {
          seen.push(told(change));
          throw new Error('handler bug');
        },
      },
    );
    await watch.synced;
    expect(seen).toEqual(['ADDED a@1', 'ADDED b@2']);
    expect(errors).toEqual(['event handler threw', 'event handler threw']);
    await watch.stop();
  });

  it('goes on after a client that throws something else than it promises', async () => {
    const { client, clock, watch } = stage({ lists: [page('5')], streams: [[]] });
    await watch.synced;
    Object.assign(client, {
      watch: () => {
        throw new TypeError('client bug');
      },
    });
    await clock.advance(600_000);
    expect(watch.stats().failures).toBe(1);
    expect(client.listed).toHaveLength(2);
    await watch.stop();
  });

  it('is alive while it tries, however long the server fails', async () => {
    const { clock, watch } = stage({
      lists: Array.from({ length: 2_000 }, () => ({ fails: BROKEN })),
    });
    for (let minute = 0; minute < 60; minute++) {
      await clock.advance(60_000);
      expect(watch.liveCheck.problem()).toBeUndefined();
    }
    await watch.stop();
  });

  it('is alive no more once a handler holds it up, and says what waits', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const { clock, watch } = stage({ lists: [page('5', pod('a', '1'))] }, { onEvent: () => held });
    await clock.advance(600_000);
    expect(watch.liveCheck.problem()).toBeUndefined();
    await clock.advance(60_000);
    expect(watch.liveCheck.problem()).toBe('no attempt to read pods for 660 s');
    release();
    await watch.stop();
  });

  it('gives the handler one event at a time, in order', async () => {
    const seen: string[] = [];
    let atOnce = 0;
    const { watch } = stage(
      { lists: [page('5', pod('a', '1'), pod('b', '2'))] },
      {
        onEvent: async (change) => {
          atOnce += 1;
          expect(atOnce).toBe(1);
          await settled();
          seen.push(told(change));
          atOnce -= 1;
        },
      },
    );
    await watch.synced;
    expect(seen).toEqual(['ADDED a@1', 'ADDED b@2']);
    await watch.stop();
  });

  it('takes a collection that discovery does not know for an empty one and finds it later', async () => {
    const { clock, watch, seen } = stage({
      lists: [{ fails: MISSING }, page('5', pod('a', '1'))],
      serves: false,
    });
    await watch.synced;
    expect(watch.isSynced).toBe(true);
    await clock.advance(30_000);
    expect(seen).toEqual(['ADDED a@1']);
    await watch.stop();
  });

  it('does not take a 404 for an empty list while discovery still names the resource', async () => {
    const { clock, watch, seen } = stage({
      lists: [page('5', pod('a', '1')), { fails: MISSING }, page('6', pod('a', '1'))],
      streams: [[{ fails: GONE }]],
      serves: true,
    });
    await clock.advance(5_000);
    expect(seen).toEqual(['ADDED a@1']);
    await watch.stop();
  });

  it('compares itself with the server at its own version and counts what it had lost', async () => {
    const { client, clock, watch, seen } = stage(
      {
        lists: [page('5', pod('a', '1')), page('7', pod('a', '3'), pod('b', '4'))],
        streams: [[event('BOOKMARK', { metadata: { resourceVersion: '7' } })]],
      },
      { checkEveryMs: 60_000 },
    );
    await clock.advance(60_000);
    expect(client.listed[1]).toMatchObject({ exactResourceVersion: '7' });
    expect(seen).toEqual(['ADDED a@1', 'MODIFIED a@3', 'ADDED b@4']);
    expect(watch.stats()).toMatchObject({ drift: 2, relists: 0 });
    expect(client.watched.map(({ resourceVersion }) => resourceVersion)).toEqual(['5', '7']);
    await watch.stop();
  });

  it.each<[string, ApiFailure]>([
    ['is not answered', { ...COMMON, kind: 'Timeout' }],
    ['finds no server', { ...COMMON, kind: 'Network' }],
    ['fails', BROKEN],
  ])('follows its stream until the next comparison where one %s', async (_what, failure) => {
    const { client, clock, watch, seen } = stage(
      {
        lists: [page('5', pod('a', '1')), { fails: failure }, { fails: failure }],
        streams: [[], [event('ADDED', pod('b', '6'))]],
      },
      { checkEveryMs: 60_000 },
    );
    await clock.advance(119_000);
    expect(seen).toEqual(['ADDED a@1', 'ADDED b@6']);
    expect([client.listed.length, client.watched.length]).toEqual([2, 2]);
    await clock.advance(10_000);
    expect([client.listed.length, client.watched.length]).toEqual([3, 3]);
    await watch.stop();
  });

  it('keeps what the transform leaves of an object', async () => {
    const { watch } = stage(
      { lists: [page('5', { ...pod('a', '1'), spec: 'large' })] },
      { transform: ({ metadata }) => ({ metadata }) },
    );
    await watch.synced;
    expect(watch.cache.list()).toEqual([pod('a', '1')]);
    await watch.stop();
  });

  it('keeps the object as it came when the transform throws', async () => {
    const { watch, errors } = stage(
      { lists: [page('5', pod('a', '1'))] },
      {
        transform: () => {
          throw new Error('transform bug');
        },
      },
    );
    await watch.synced;
    expect(watch.cache.list()).toEqual([pod('a', '1')]);
    expect(errors).toHaveLength(1);
    await watch.stop();
  });

  it.each([
    ['a list', {}],
    ['a stream', { lists: [page('5')] }],
    ['a wait', { lists: [{ fails: BROKEN }] }],
  ])('stops during %s, leaves no timer and lets those go on who wait for it', async (_, script) => {
    const { client, clock, watch } = stage(script);
    await settled();
    await watch.stop();
    await watch.synced;
    const calls = client.listed.length + client.watched.length;
    expect(clock.timers).toBe(0);
    await clock.advance(3_600_000);
    expect(client.listed.length + client.watched.length).toBe(calls);
  });
});
