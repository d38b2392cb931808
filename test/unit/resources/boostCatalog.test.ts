/** The boosts a process knows, as the events of a watch change them. */

import { describe, expect, it } from '@jest/globals';
import { BoostCatalog } from '../../../src/resources';

describe('BoostCatalog', () => {
  it('finds a boost by namespace and name', () => {
    const catalog = catalogOf(boost({ namespace: 'demo' }), boost({ namespace: 'prod' }));
    expect(catalog.get('prod', 'spring-apps')).toMatchObject({ kind: 'Valid', namespace: 'prod' });
    expect(catalog.get('other', 'spring-apps')).toBeUndefined();
  });

  it('lists the boosts of one namespace', () => {
    const catalog = catalogOf(
      boost({ name: 'a' }),
      boost({ name: 'b' }),
      boost({ namespace: 'x' }),
    );
    expect([...catalog.list('demo')].map(({ name }) => name)).toEqual(['a', 'b']);
    expect([...catalog.list('empty')]).toEqual([]);
  });

  it('keeps an invalid boost, so that its status can say why', () => {
    const catalog = catalogOf({ ...boost({}), spec: {} });
    expect(catalog.get('demo', 'spring-apps')).toMatchObject({ kind: 'Invalid' });
  });

  it('keeps the compiled boost while uid and generation stay the same', () => {
    const catalog = catalogOf(boost({}));
    const before = catalog.get('demo', 'spring-apps');
    catalog.upsert({ ...boost({}), status: { stuckPods: 1 } });
    expect(catalog.get('demo', 'spring-apps')).toBe(before);
  });

  it.each([{ generation: 2 }, { uid: 'second' }])('compiles again for %j', (change) => {
    const catalog = catalogOf(boost({}));
    catalog.upsert(boost(change));
    expect(catalog.get('demo', 'spring-apps')).toMatchObject(change);
  });

  it('compiles every time an object that has neither', () => {
    const bare = boost({ uid: undefined, generation: undefined });
    const catalog = catalogOf(bare);
    const before = catalog.get('demo', 'spring-apps');
    catalog.upsert(bare);
    expect(catalog.get('demo', 'spring-apps')).not.toBe(before);
  });

  it('forgets a boost that is deleted', () => {
    const catalog = catalogOf(boost({}));
    catalog.remove(boost({}));
    expect([...catalog.list('demo')]).toEqual([]);
  });

  it('keeps a boost that was created again when the end of the first one is told late', () => {
    const catalog = catalogOf(boost({ uid: 'second' }));
    catalog.remove(boost({ uid: 'first' }));
    expect(catalog.get('demo', 'spring-apps')).toMatchObject({ uid: 'second' });
  });
});

interface Identity {
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string | undefined;
  readonly generation?: number | undefined;
}

function boost(identity: Identity): Record<string, unknown> {
  const metadata = { namespace: 'demo', name: 'spring-apps', uid: 'first', generation: 1 };
  const matchContainers = { type: 'ExactName', value: 'app' };
  return {
    metadata: { ...metadata, ...identity },
    selector: { matchLabels: { app: 'web' } },
    spec: {
      resourcePolicy: {
        containerPolicies: [{ matchContainers, percentageIncrease: { value: 100 } }],
      },
      durationPolicy: { podCondition: { type: 'Ready', status: 'True' } },
    },
  };
}

function catalogOf(...boosts: readonly unknown[]): BoostCatalog {
  const catalog = new BoostCatalog();
  for (const object of boosts) catalog.upsert(object);
  return catalog;
}
