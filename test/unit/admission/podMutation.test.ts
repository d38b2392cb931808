import { describe, expect, it } from '@jest/globals';
import { applyPatch } from 'fast-json-patch';
import { mutatePod } from '../../../src/admission/podMutation';
import type { Ruling } from '../../../src/admission/ruling';
import { BOOST_KEY, SKIPPED_KEY, compileBoost } from '../../../src/boost-engine';
import type { CompiledBoost } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import {
  RESOURCE_SHAPES,
  aBoost,
  aContainer,
  aPod,
  percentageIncrease,
} from '../../support/builders';
import { aReview, requestOf } from './reviews';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const LATER = NOW + 60_000;

const doubled = compileBoost(aBoost());

function judge(request: JsonObject, boosts: readonly CompiledBoost[] = [doubled]): Ruling {
  return mutatePod(requestOf(aReview(request)), { boosts, limitRanges: [], quotas: [] }, NOW);
}

/** The pod that the API server would go on with. */
function mutated(pod: JsonObject, boost: CompiledBoost = doubled, now = NOW): JsonObject {
  const namespace = { boosts: [boost], limitRanges: [], quotas: [] };
  const { answer } = mutatePod(requestOf(aReview({ object: pod })), namespace, now);
  const copy = structuredClone(pod);
  const patch = (answer.patch ?? []).map((operation) => ({ ...operation }));
  return applyPatch(copy, patch, true).newDocument;
}

describe('a pod that a boost selects', () => {
  it('is allowed with more CPU, a label and a record', () => {
    expect(mutated(aPod())).toMatchObject({
      metadata: { labels: { app: 'app', [BOOST_KEY]: 'boost' } },
      spec: {
        containers: [
          { resources: { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '128Mi' } } },
        ],
      },
    });
  });

  it('has the boost in the audit log and in one line of ours', () => {
    const { answer, note } = judge({});
    expect(answer).toMatchObject({ allowed: true, auditAnnotations: { boost: 'boost' } });
    expect(note).toEqual({
      level: 'info',
      result: 'Boost',
      message: 'boosted',
      fields: {
        namespace: 'default',
        pod: 'app',
        boost: 'boost',
        containers: [
          {
            name: 'app',
            from: { request: '250m', limit: '1' },
            to: { request: '500m', limit: '2' },
          },
        ],
        skipped: [],
      },
    });
  });

  it('is logged by the start of its name where the API server has not made one yet', () => {
    const object = aPod({ metadata: { name: undefined, generateName: 'app-7d4b9-' } });
    expect(judge({ object }).note.fields).toMatchObject({ pod: 'app-7d4b9-*' });
  });

  it('belongs to the namespace of the request, whatever its own says', () => {
    const object = aPod({ metadata: { namespace: undefined } });
    expect(judge({ object, namespace: 'default' }).note.result).toBe('Boost');
    expect(judge({ object, namespace: 'other' }).note.result).toBe('NoBoostMatches');
  });
});

describe('a second call for the same pod', () => {
  it('changes nothing', () => {
    const once = mutated(aPod());
    expect(mutated(once, doubled, LATER)).toEqual(once);
    expect(judge({ object: once }).answer).toEqual({
      allowed: true,
      auditAnnotations: { boost: 'boost' },
    });
  });

  it('boosts a container that was added in between, and none twice', () => {
    const everything = compileBoost(
      aBoost({
        containerPolicies: [
          {
            matchContainers: { type: 'RegexName', value: '.*' },
            percentageIncrease: { value: 100 },
          },
        ],
      }),
    );
    const injected = aContainer({ name: 'proxy', resources: RESOURCE_SHAPES['request only'] });
    const once = mutated(aPod(), everything);
    const withProxy = {
      ...once,
      spec: { containers: [...containersOf(once), injected] },
    };
    expect(containersOf(mutated(withProxy, everything, LATER))).toMatchObject([
      { name: 'app', resources: { requests: { cpu: '500m' }, limits: { cpu: '2' } } },
      { name: 'proxy', resources: { requests: { cpu: '500m' } } },
    ]);
  });
});

describe('a pod whose boost comes later', () => {
  it('is marked only, and the answer, the log and the metric say why', () => {
    const object = aPod({ spec: { priority: 1_000 } });
    const { answer, note } = judge({ object });
    expect(containersOf(mutated(object))).toEqual(containersOf(object));
    expect(answer).toMatchObject({
      allowed: true,
      auditAnnotations: { boost: 'boost', postponed: 'MightPreempt' },
    });
    expect(note).toMatchObject({ level: 'info', result: 'MightPreempt' });
  });
});

describe('a pod that is left as it is', () => {
  const bestEffort = aPod({ containers: [aContainer({ resources: RESOURCE_SHAPES.BestEffort })] });

  it('says the reason on itself, in the audit log and in one line of ours', () => {
    expect(mutated(bestEffort)).toMatchObject({
      metadata: { annotations: { [SKIPPED_KEY]: 'NoCpu' } },
    });
    const { answer, note } = judge({ object: bestEffort });
    expect(answer.auditAnnotations).toEqual({ boost: 'boost', skipped: 'NoCpu' });
    expect(note).toEqual({
      level: 'info',
      result: 'NoCpu',
      message: 'not boosted: it has neither a CPU request nor a CPU limit',
      fields: {
        namespace: 'default',
        pod: 'app',
        boost: 'boost',
        code: 'NoCpu',
        skipped: [{ name: 'app', code: 'NoCpu' }],
      },
    });
  });

  it('is not worth a line at info where no boost selects it', () => {
    const { answer, note } = judge({}, []);
    expect(answer).toEqual({ allowed: true, patch: [] });
    expect(note).toMatchObject({ level: 'debug', result: 'NoBoostMatches' });
  });

  it('names 20 containers in the log at most', () => {
    const containers = Array.from({ length: 100 }, (_, index) =>
      aContainer({ name: `app-${index}`, resources: {} }),
    );
    const { note } = judge({ object: aPod({ containers }) });
    expect(note.fields.skipped).toHaveLength(20);
  });
});

describe('a pod with more containers than any node runs', () => {
  function podWith(containers: number): JsonObject {
    return aPod({
      containers: Array.from({ length: containers }, (_, index) =>
        aContainer({ name: `app-${index}` }),
      ),
      spec: { initContainers: [aContainer({ name: 'init' })] },
    });
  }

  it('is not judged, so that it holds up no other pod', () => {
    const { answer, note } = judge({ object: podWith(200) });
    expect(answer).toEqual({ allowed: true, auditAnnotations: { skipped: 'TooManyContainers' } });
    expect(note).toMatchObject({ level: 'info', result: 'TooManyContainers' });
  });

  it('is judged up to 200', () => {
    expect(judge({ object: podWith(199) }).note.result).not.toBe('TooManyContainers');
  });
});

describe('a dry run', () => {
  it('gets the same answer, and is not counted or logged as a boost', () => {
    const real = judge({});
    const dryRun = judge({ dryRun: true });
    expect(dryRun.answer).toEqual(real.answer);
    expect(dryRun.note).toEqual({
      ...real.note,
      level: 'debug',
      result: 'DryRun',
      message: 'dry run: boosted',
    });
  });
});

describe('a review that is not about the creation of a pod', () => {
  it.each<[string, JsonObject]>([
    ['an update', { operation: 'UPDATE', oldObject: aPod() }],
    ['a deletion', { operation: 'DELETE', object: null, oldObject: aPod() }],
    ['a resize', { operation: 'UPDATE', subResource: 'resize' }],
    ['a binding', { subResource: 'binding' }],
    ['a deployment', { resource: { group: 'apps', version: 'v1', resource: 'deployments' } }],
    ['pods of metrics', { resource: { group: 'metrics.k8s.io', version: 'v1', resource: 'pods' } }],
  ])('changes nothing: %s', (_what, request) => {
    expect(judge(request).answer).toEqual({
      allowed: true,
      status: { code: 200, message: 'left as it is: only the creation of pods is changed' },
    });
  });
});

describe('an object that is no pod', () => {
  it.each([
    null,
    7,
    'pod',
    [],
    {},
    { metadata: [] },
    { metadata: { labels: { app: 'app' } }, spec: 7 },
    { metadata: { labels: { app: 'app' }, annotations: 'none' }, spec: { containers: {} } },
    { metadata: { labels: { app: 'app' } }, spec: { containers: [null, 7, { name: 'app' }] } },
  ])('is allowed: %j', (object) => {
    const everyPod = compileBoost(aBoost({ selector: {} }));
    const { answer } = judge({ object }, [doubled, everyPod]);
    expect(answer.allowed).toBe(true);
  });
});

describe('two boosts for one pod', () => {
  it('count once: the first by name, whatever their order', () => {
    const second = compileBoost(
      aBoost({ name: 'second', containerPolicies: [percentageIncrease('app', 300)] }),
    );
    expect(judge({}, [second, doubled])).toEqual(judge({}, [doubled, second]));
    expect(judge({}, [second, doubled]).answer.auditAnnotations).toEqual({ boost: 'boost' });
  });
});

function containersOf(pod: JsonObject): readonly unknown[] {
  const spec = pod.spec;
  if (typeof spec !== 'object' || spec === null || !('containers' in spec)) return [];
  return Array.isArray(spec.containers) ? spec.containers : [];
}
