/** Webhook configurations: whose boosts pods, and the mark that stops ours. */
import { describe, expect, it } from '@jest/globals';
import type { Raising } from '../../../src/boost-engine';
import {
  PodWebhooks,
  STOP_MARK,
  conflictingWebhooks,
  isStopped,
  stopPatch,
  timeoutOf,
  undoPatch,
} from '../../../src/controller/podWebhooks';
import { MUTATING_WEBHOOK_CONFIGURATIONS, ResourceWatch } from '../../../src/kube';
import type { JsonObject } from '../../../src/kube';
import { ManualClock, settled } from '../../support/manualClock';
import { applied } from '../../support/engineLaws';
import { ScriptedClient } from '../kube/scriptedClient';
import type { Script } from '../kube/scriptedClient';

const OURS = 'startup-cpu-boost';

function webhook(overrides: JsonObject = {}): JsonObject {
  return {
    name: 'cpuboost.autoscaling.x-k8s.io',
    clientConfig: { service: { namespace: 'ns', name: 'boost', path: '/mutate-v1-pod' } },
    timeoutSeconds: 2,
    ...overrides,
  };
}

function configuration(name: string, ...webhooks: readonly unknown[]): JsonObject {
  return { metadata: { name, uid: `uid-${name}`, resourceVersion: '1' }, webhooks };
}

const stopped = (object: JsonObject) => applied(object, stopPatch(object));

describe('another configuration conflicts', () => {
  it.each<[string, JsonObject, boolean]>([
    ['by Service', configuration('other', webhook()), true],
    [
      'by URL',
      configuration('other', webhook({ clientConfig: { url: 'https://a:9443/mutate-v1-pod?x' } })),
      true,
    ],
    ['among others', configuration('other', { name: 'x' }, webhook()), true],
    ['not when it is ours', configuration(OURS, webhook()), false],
    ['not under another webhook name', configuration('other', webhook({ name: 'x.y.z' })), false],
    [
      'not on another path',
      configuration('other', webhook({ clientConfig: { service: { path: '/mutate' } } })),
      false,
    ],
    ['not when it is stopped', stopped(configuration('other', webhook())), false],
    [
      'not with a URL that is none',
      configuration('other', webhook({ clientConfig: { url: 'x' } })),
      false,
    ],
    ['not without webhooks', { metadata: { name: 'other' }, webhooks: null }, false],
  ])('%s', (_how, object, expected) => {
    expect(conflictingWebhooks([object], OURS)).toEqual(expected ? ['other'] : []);
  });

  it('whatever the order, named in one order', () => {
    const all = ['b', 'a', 'c'].map((name) => configuration(name, webhook()));
    expect(conflictingWebhooks(all, OURS)).toEqual(['a', 'b', 'c']);
  });
});

describe('the time that a call may take', () => {
  it.each<[JsonObject, number | undefined]>([
    [configuration(OURS, webhook()), 2_000],
    [configuration(OURS, webhook({ timeoutSeconds: undefined })), 10_000],
    [configuration(OURS, { name: 'x' }), undefined],
    [{}, undefined],
  ])('of %j', (object, expected) => {
    expect(timeoutOf(object)).toBe(expected);
  });
});

describe('the stop mark', () => {
  const conditions = [{ name: 'theirs', expression: 'true' }];

  it.each<[string, JsonObject]>([
    ['no conditions', configuration(OURS, webhook())],
    ['conditions', configuration(OURS, webhook({ matchConditions: conditions }))],
    ['other webhooks before it', configuration(OURS, { name: 'x' }, webhook())],
  ])('is added to a webhook with %s, and taken off again', (_what, before) => {
    expect(isStopped(before)).toBe(false);
    const after = stopped(before);
    expect(isStopped(after)).toBe(true);
    expect(stopPatch(after)).toEqual([]);
    expect(isStopped(applied(after, undoPatch(after)))).toBe(false);
    expect(undoPatch(before)).toEqual([]);
  });

  it('leaves the conditions of others where they are', () => {
    const before = configuration(OURS, webhook({ matchConditions: conditions }));
    expect(stopped(before)).toMatchObject({
      webhooks: [{ matchConditions: [...conditions, STOP_MARK] }],
    });
    const after = stopped(before);
    expect(applied(after, undoPatch(after))).toEqual(before);
  });

  it.each([
    ['stop', configuration(OURS, webhook()), stopPatch],
    ['undo', stopped(configuration(OURS, webhook())), undoPatch],
  ])('is only changed on the webhook that was read: %s', (_what, object, patch) => {
    const changed = { ...object, webhooks: [{ name: 'moved' }, ...[object.webhooks].flat()] };
    expect(() => applied(changed, patch(object))).toThrow();
    const recreated = { ...object, metadata: { name: OURS, uid: 'another' } };
    expect(() => applied(recreated, patch(object))).toThrow();
  });
});

describe('a controller', () => {
  async function watching(script: Script): Promise<PodWebhooks> {
    const ignore = (): void => undefined;
    const watch = new ResourceWatch({
      client: new ScriptedClient(script),
      clock: new ManualClock(),
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      resource: MUTATING_WEBHOOK_CONFIGURATIONS,
      onEvent: ignore,
    });
    watch.start();
    await settled();
    return new PodWebhooks(watch, OURS);
  }
  const listed = (...items: readonly JsonObject[]) =>
    watching({ lists: [{ items, resourceVersion: '1' }] });

  it.each<[string, Promise<PodWebhooks>, Raising]>([
    ['may raise pods while the webhook serves', listed(configuration(OURS, webhook())), 'On'],
    [
      'may raise none while the webhook is stopped',
      listed(stopped(configuration(OURS, webhook()))),
      'Off',
    ],
    ['may raise pods where there is no configuration', listed(), 'On'],
    ['does not know before it has looked', watching({}), 'Unknown'],
    [
      'may raise pods where it must not look',
      watching({
        lists: [
          {
            fails: {
              kind: 'Forbidden',
              request: 'LIST',
              message: 'no',
              source: undefined,
              status: 403,
              reason: 'Forbidden',
              causes: [],
            },
          },
        ],
      }),
      'On',
    ],
  ])('%s', async (_what, webhooks, expected) => {
    expect((await webhooks).raising).toBe(expected);
  });

  it('tells nothing of what it has not read', async () => {
    expect((await watching({})).surroundings).toEqual({});
    expect((await listed(configuration('other', webhook()))).surroundings).toEqual({
      conflictingWebhooks: ['other'],
      webhook: 'Serving',
    });
  });
});
