/** When admission concludes that no controller is there, and when it must not. */
import { describe, expect, it } from '@jest/globals';
import { ControllerLease } from '../../../src/admission/controllerLease';
import type { ApiFailure, JsonObject } from '../../../src/kube';
import { createLogger } from '../../../src/observability';
import { ManualClock } from '../../support/manualClock';
import { ScriptedClient } from '../kube/scriptedClient';
import type { Script } from '../kube/scriptedClient';

const GRACE_MS = 100_000;
const DURATION_MS = 6_000;

function lease(resourceVersion: string, holderIdentity = 'one'): JsonObject {
  return {
    metadata: { name: 'lease', namespace: 'ns', uid: 'uid', resourceVersion },
    spec: { holderIdentity, leaseDurationSeconds: holderIdentity === '' ? 1 : DURATION_MS / 1_000 },
  };
}

const FORBIDDEN: ApiFailure = {
  kind: 'Forbidden',
  request: 'LIST leases',
  message: 'no',
  source: undefined,
  status: 403,
  reason: 'Forbidden',
  causes: [],
};

const GONE: ApiFailure = { ...FORBIDDEN, kind: 'Gone', status: 410, reason: 'Expired' };

async function watching(script: Script) {
  const clock = new ManualClock();
  const client = new ScriptedClient(script);
  const watched = new ControllerLease({
    client,
    clock,
    logger: createLogger('silent', {}),
    lease: { namespace: 'ns', name: 'lease' },
    graceMs: GRACE_MS,
  });
  watched.start();
  await clock.advance(0);
  return { client, clock, watched };
}

const list = (...items: readonly JsonObject[]) => ({ items, resourceVersion: '1' });

describe('a controller is missing', () => {
  it.each<[string, Script, number]>([
    ['never had a Lease', { lists: [list()] }, GRACE_MS],
    ['let its Lease expire', { lists: [list(lease('1'))] }, DURATION_MS + GRACE_MS],
    ['gave its Lease back', { lists: [list(lease('1', ''))] }, 1_000 + GRACE_MS],
    [
      'had its Lease deleted',
      { lists: [list(lease('1'))], streams: [[{ type: 'DELETED', object: lease('2') }]] },
      GRACE_MS,
    ],
  ])('when it %s, after the grace and not before', async (_what, script, afterMs) => {
    const { clock, watched } = await watching(script);
    await clock.advance(afterMs);
    expect(watched.controller).toBe('Acting');
    await clock.advance(1);
    expect(watched.controller).toBe('Missing');
  });
});

describe('a controller counts as there', () => {
  it('before anything is known', async () => {
    const { clock, watched } = await watching({});
    await clock.advance(10 * GRACE_MS);
    expect(watched.controller).toBe('Acting');
  });

  it('where the Lease must not be read', async () => {
    const lists = Array.from({ length: 500 }, () => ({ fails: FORBIDDEN }));
    const { clock, watched } = await watching({ lists });
    await clock.advance(10 * GRACE_MS);
    expect(watched.controller).toBe('Acting');
  });

  it('while the API server is away, whatever was known of the Lease', async () => {
    const streams = Array.from({ length: 500 }, () => [{ fails: FORBIDDEN }]);
    const { clock, watched } = await watching({ lists: [list(lease('1'))], streams });
    await clock.advance(2 * GRACE_MS);
    expect(watched.controller).toBe('Acting');
  });

  it('for the whole grace after the API server was away for long', async () => {
    const away = Array.from({ length: 40 }, () => ({ fails: FORBIDDEN }));
    const lists = [list(lease('1')), ...away, list(lease('1'))];
    const { client, clock, watched } = await watching({ lists, streams: [[{ fails: GONE }]] });
    while (client.listed.length < lists.length) await clock.advance(1_000);
    expect(watched.controller).toBe('Acting');
    await clock.advance(GRACE_MS - 1_000);
    expect(watched.controller).toBe('Acting');
    await clock.advance(2_000);
    expect(watched.controller).toBe('Missing');
  });
});
