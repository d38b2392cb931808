/** What a controller concludes from discovery and from its rights, and for how long. */
import { describe, expect, it } from '@jest/globals';
import { SelfCheck } from '../../../src/controller/selfCheck';
import type { SelfCheckOptions } from '../../../src/controller/selfCheck';
import { fieldsOf, textOf } from '../../../src/boost-engine';
import { ApiError } from '../../../src/kube';
import type { JsonObject } from '../../../src/kube';
import { createLogger } from '../../../src/observability';
import { ManualClock } from '../../support/manualClock';

/** An API server with these rights, which can be taken away. */
class Rights {
  serves = true;
  isAway = false;
  readonly allowed = new Set(['pods', 'pods/resize']);
  /** Namespaces that were asked about, in order. */
  readonly asked: string[] = [];

  readonly client: SelfCheckOptions['client'] = {
    serves: () => (this.isAway ? away() : Promise.resolve(this.serves)),
    create: (_resource, body) => (this.isAway ? away() : Promise.resolve(this.#review(body))),
  };

  #review({ spec }: JsonObject): JsonObject {
    const attributes = fieldsOf(fieldsOf(spec).get('resourceAttributes'));
    const [resource = '', subresource] = ['resource', 'subresource'].map((key) =>
      textOf(attributes.get(key)),
    );
    this.asked.push(textOf(attributes.get('namespace')) ?? '');
    const allowed =
      attributes.get('verb') === 'patch' &&
      this.allowed.has(subresource === undefined ? resource : `${resource}/${subresource}`);
    return { status: { allowed } };
  }
}

function away(): Promise<never> {
  const common = { request: 'CREATE', message: 'refused', source: undefined };
  return Promise.reject(new ApiError({ kind: 'Network', ...common }));
}

function stage() {
  const rights = new Rights();
  const clock = new ManualClock();
  const logger = createLogger('silent', {});
  return { rights, clock, check: new SelfCheck({ client: rights.client, clock, logger }) };
}

describe('a controller', () => {
  it('can revert where it may patch pods and pods/resize', async () => {
    expect(await stage().check.revertibleIn('demo')).toBe('CanRevert');
  });

  it.each(['pods', 'pods/resize'])('cannot where it may not patch %s', async (resource) => {
    const { rights, check } = stage();
    rights.allowed.delete(resource);
    const reason = resource === 'pods' ? 'PodPatchForbidden' : 'ResizeForbidden';
    expect(await check.revertibleIn('demo')).toBe(reason);
  });

  it('cannot where pods/resize is not served', async () => {
    const { rights, check } = stage();
    rights.serves = false;
    expect(await check.revertibleIn('demo')).toBe('ResizeNotServed');
  });

  it('does not know while nobody answers', async () => {
    const { rights, check } = stage();
    rights.isAway = true;
    expect(await check.revertibleIn('demo')).toBeUndefined();
  });
});

describe('an answer', () => {
  it('counts for a minute, for its namespace', async () => {
    const { rights, clock, check } = stage();
    await check.revertibleIn('demo');
    rights.allowed.clear();
    await clock.advance(59_999);
    expect(check.countsFor('demo')).toBe(1);
    expect(await check.revertibleIn('demo')).toBe('CanRevert');
    expect(await check.revertibleIn('other')).toBe('ResizeForbidden');
    await clock.advance(1);
    expect(check.countsFor('demo')).toBe(0);
    expect(await check.revertibleIn('demo')).toBe('ResizeForbidden');
  });

  it('counts for a second once it is doubted, however often', async () => {
    const { rights, clock, check } = stage();
    await check.revertibleIn('demo');
    const before = rights.asked.length;
    for (let refusals = 0; refusals < 1_000; refusals += 1) {
      check.doubt('demo');
      await check.revertibleIn('demo');
    }
    expect(rights.asked).toHaveLength(before);
    await clock.advance(1_000);
    rights.allowed.clear();
    expect(await check.revertibleIn('demo')).toBe('ResizeForbidden');
  });

  it('is asked for once by many at a time', async () => {
    const { rights, check } = stage();
    await Promise.all(Array.from({ length: 50 }, () => check.revertibleIn('demo')));
    expect(rights.asked).toEqual(['demo', 'demo']);
  });
});
