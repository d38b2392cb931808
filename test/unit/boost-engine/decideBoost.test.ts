/** What becomes of a pod at admission. */
import { describe, expect, it } from '@jest/globals';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  fieldsOf,
  itemsOf,
  qosClassOf,
  readPod,
  SKIPPED_KEY,
} from '../../../src/boost-engine';
import type { BoostDecision, BoostInput, WayBack } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import {
  aBoost,
  aContainer,
  aPod,
  percentageIncrease,
  RESOURCE_SHAPES,
} from '../../support/builders';
import type { ResourceShape } from '../../support/builders';
import { applied, hasMarker, resourcesOf } from '../../support/engineLaws';

const NOW = Date.parse('2026-06-01T12:00:00Z');

type Conditions = Pick<BoostInput, 'limitRanges' | 'quotas' | 'wayBack' | 'guaranteed'>;

function decide(pod: unknown, boosts: readonly unknown[], more: Conditions = {}): BoostDecision {
  return decideBoost({
    pod,
    namespace: 'default',
    boosts: boosts.map(compileBoost),
    now: NOW,
    ...more,
  });
}

/** The pod as admission leaves it. */
function admitted(pod: JsonObject, boosts: readonly unknown[], more: Conditions = {}): JsonObject {
  return applied(pod, decide(pod, boosts, more).patch);
}

function fixed(requests: string, limits?: string): JsonObject {
  return aBoost({
    containerPolicies: [
      {
        matchContainers: { type: 'RegexName', value: '.*' },
        fixedResources: { requests, ...(limits === undefined ? {} : { limits }) },
      },
    ],
  });
}

function everyContainer(percent: number): JsonObject {
  return aBoost({
    containerPolicies: [
      {
        matchContainers: { type: 'RegexName', value: '.*' },
        percentageIncrease: { value: percent },
      },
    ],
  });
}

function withResources(...resources: readonly JsonObject[]): JsonObject {
  const names = ['app', 'web', 'proxy'];
  return aPod({
    containers: resources.map((value, index) =>
      aContainer({ name: names[index] ?? `more-${index}`, resources: value }),
    ),
  });
}

const cpu = (request?: string, limit?: string): JsonObject => ({
  requests: { memory: '64Mi', ...(request === undefined ? {} : { cpu: request }) },
  limits: { memory: '64Mi', ...(limit === undefined ? {} : { cpu: limit }) },
});

function recordIn(pod: unknown): unknown {
  return JSON.parse(readPod(pod).annotations?.get(BOOST_KEY) ?? 'null');
}

function range(item: JsonObject): JsonObject {
  return { spec: { limits: [{ type: 'Container', ...item }] } };
}

function withRecord(pod: JsonObject, record: JsonObject): JsonObject {
  const annotations = { [BOOST_KEY]: JSON.stringify(record) };
  return { ...pod, metadata: { ...Object.fromEntries(fieldsOf(pod.metadata)), annotations } };
}

function codesOf(decision: BoostDecision): unknown {
  return decision.kind === 'AlreadyBoosted' ? [] : decision.skipped;
}

describe('the six shapes of resources', () => {
  it.each<[ResourceShape, JsonObject]>([
    [
      'request and limit',
      { requests: { cpu: '500m', memory: '64Mi' }, limits: { cpu: '2', memory: '128Mi' } },
    ],
    ['request only', { requests: { cpu: '500m' } }],
    ['limit only', { limits: { cpu: '1' } }],
    [
      'Guaranteed',
      { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '1', memory: '64Mi' } },
    ],
  ])('%s: 100% doubles just the CPU values that are there', (shape, expected) => {
    const pod = withResources(RESOURCE_SHAPES[shape]);
    expect(resourcesOf(admitted(pod, [aBoost()]))).toEqual([expected]);
  });

  it.each<[ResourceShape, string]>([
    ['memory only', 'NoCpu'],
    ['BestEffort', 'NoCpu'],
  ])('%s: the pod stays as it is, with the reason on it', (shape, code) => {
    const pod = withResources(RESOURCE_SHAPES[shape]);
    const after = admitted(pod, [aBoost()]);
    expect(resourcesOf(after)).toEqual(resourcesOf(pod));
    expect(readPod(after).annotations).toEqual(new Map([[SKIPPED_KEY, code]]));
    expect(readPod(after).labels).toEqual(readPod(pod).labels);
  });
});

describe('fixed resources', () => {
  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['raise both', cpu('500m', '1'), fixed('2', '3'), cpu('2', '3')],
    ['leave an absent limit absent', cpu('500m'), fixed('2', '3'), cpu('2')],
    ['raise the request alone', cpu('500m', '3'), fixed('2'), cpu('2', '3')],
    ['never lower a request', cpu('2500m', '2500m'), fixed('2', '3'), cpu('2500m', '3')],
    ['never lower a limit', cpu('1', '4'), fixed('2', '3'), cpu('2', '4')],
    ['write whole milli-cores', cpu('1m', '5'), fixed('1500500u', '5'), cpu('1501m', '5')],
  ])('%s', (_what, before, boost, after) => {
    // A second container keeps the pod Burstable, whatever becomes of the first one.
    const other = { requests: { memory: '1Mi' } };
    const pod = withResources(before, other);
    expect(resourcesOf(admitted(pod, [boost]))).toEqual([after, other]);
  });

  it.each<[string, JsonObject, JsonObject, string]>([
    ['everything above already', cpu('4', '5'), fixed('2', '3'), 'NothingToRaise'],
    ['the same already, in other words', cpu('2000m', '3.0'), fixed('2', '3'), 'NothingToRaise'],
    ['request above the limit that stays', cpu('1', '1500m'), fixed('2'), 'RequestAboveLimit'],
    ['a limit of zero', cpu('0', '0'), fixed('2', '3'), 'RequestAboveLimit'],
    ['no quantity', cpu('lots', '2'), fixed('2', '3'), 'UnreadableQuantity'],
    ['a negative quantity', cpu('-1', '2'), fixed('2', '3'), 'UnreadableQuantity'],
  ])('leave alone: %s', (_what, before, boost, code) => {
    const pod = withResources(before);
    const decision = decide(pod, [boost]);
    expect(decision).toMatchObject({ kind: 'Skip', code });
    expect(resourcesOf(applied(pod, decision.patch))).toEqual(resourcesOf(pod));
  });
});

describe('a percentage', () => {
  it.each<[string, string, number, string, string]>([
    ['1m', '3m', 1, '2m', '4m'],
    ['5m', '1', 50, '8m', '1500m'],
    ['0.1', '1.5', 10, '110m', '1650m'],
    ['333m', '2', 33, '443m', '2660m'],
    ['1', '1k', 100, '2', '2000'],
    ['0', '1', 100, '0', '2'],
  ])('of %s/%s and +%d% is %s/%s', (request, limit, percent, toRequest, toLimit) => {
    const pod = withResources(cpu(request, limit));
    expect(resourcesOf(admitted(pod, [everyContainer(percent)]))).toEqual([
      cpu(toRequest, toLimit),
    ]);
  });

  it('does not make a negative request more negative', () => {
    const pod = withResources(cpu('-1', '2'));
    expect(decide(pod, [everyContainer(100)])).toMatchObject({ code: 'UnreadableQuantity' });
  });
});

describe('the QoS class', () => {
  const classOf = (pod: unknown) => qosClassOf(readPod(pod).containers);

  it.each<[string, JsonObject, JsonObject, string]>([
    [
      'Guaranteed and a higher request alone',
      withResources(cpu('1', '1')),
      fixed('2'),
      'RequestAboveLimit',
    ],
    [
      'Guaranteed and a higher limit alone',
      withResources(cpu('2', '2')),
      fixed('1', '3'),
      'WouldChangeQosClass',
    ],
    [
      'Burstable that would get request = limit',
      withResources(cpu('500m', '1')),
      fixed('2', '2'),
      'WouldChangeQosClass',
    ],
    ['BestEffort', withResources({}), fixed('2', '2'), 'NoCpu'],
    [
      'BestEffort with zeros',
      withResources({ requests: { cpu: '0' } }),
      fixed('2'),
      'WouldChangeQosClass',
    ],
  ])('stays: %s', (_what, pod, boost, code) => {
    const decision = decide(pod, [boost]);
    expect(decision).toMatchObject({ kind: 'Skip', code });
    expect(classOf(applied(pod, decision.patch))).toBe(classOf(pod));
  });

  it('is that of the whole pod: of two containers the one is boosted that leaves it as it was', () => {
    const pod = withResources(cpu('500m', '1'), cpu('500m', '1'));
    const decision = decide(pod, [fixed('2', '2')]);
    expect(decision).toMatchObject({
      kind: 'Boost',
      containers: [{ name: 'app' }],
      skipped: [{ name: 'web', code: 'WouldChangeQosClass' }],
    });
    expect(classOf(applied(pod, decision.patch))).toBe('Burstable');
  });

  it('lets a Guaranteed pod of two containers be boosted in both', () => {
    const pod = withResources(cpu('500m', '500m'), cpu('1', '1'));
    expect(resourcesOf(admitted(pod, [everyContainer(100)]))).toEqual([
      cpu('1', '1'),
      cpu('2', '2'),
    ]);
  });

  it('is judged with the init containers', () => {
    const init = aContainer({ name: 'init', resources: cpu('500m', '1') });
    const pod = { ...withResources(cpu('500m', '1')) };
    const spec = { ...Object.fromEntries(Object.entries(pod.spec ?? {})), initContainers: [init] };
    expect(decide({ ...pod, spec }, [fixed('2', '2')])).toMatchObject({ kind: 'Boost' });
  });
});

describe('which containers', () => {
  it('are those that a policy matches; the first policy counts', () => {
    const pod = withResources(cpu('1', '2'), cpu('1', '2'), cpu('1', '2'));
    const boost = aBoost({
      containerPolicies: [
        percentageIncrease('app', 100),
        {
          matchContainers: { type: 'RegexName', value: '^(app|web)$' },
          percentageIncrease: { value: 50 },
        },
      ],
    });
    const decision = decide(pod, [boost]);
    expect(resourcesOf(applied(pod, decision.patch))).toEqual([
      cpu('2', '4'),
      cpu('1500m', '3'),
      cpu('1', '2'),
    ]);
    expect(codesOf(decision)).toEqual([{ name: 'proxy', code: 'NoPolicy' }]);
  });

  it.each<[JsonObject[], boolean]>([
    [[{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }], false],
    [[{ resourceName: 'memory', restartPolicy: 'RestartContainer' }], true],
    [[{ resourceName: 'cpu', restartPolicy: 'NotRequired' }], true],
  ])(
    'with the resizePolicy %j: boosted %s, and its neighbour always',
    (resizePolicy, isBoosted) => {
      const pod = aPod({
        containers: [aContainer({ resizePolicy }), aContainer({ name: 'web' })],
      });
      const decision = decide(pod, [everyContainer(100)]);
      const names = decision.kind === 'Boost' ? decision.containers.map(({ name }) => name) : [];
      expect(names).toEqual(isBoosted ? ['app', 'web'] : ['web']);
      expect(codesOf(decision)).toEqual(
        isBoosted ? [] : [{ name: 'app', code: 'RestartsOnResize' }],
      );
    },
  );

  it('do not include init containers', () => {
    const init = aContainer({ name: 'app-init', restartPolicy: 'Always' });
    const pod = aPod({ spec: { initContainers: [init] } });
    expect(admitted(pod, [everyContainer(100)]).spec).toMatchObject({ initContainers: [init] });
  });

  it('gives for a pod without a boosted container the reason of one that was meant', () => {
    const pod = withResources(cpu('1', '2'), cpu());
    const boost = aBoost({ containerPolicies: [percentageIncrease('web', 100)] });
    expect(decide(pod, [boost])).toMatchObject({
      code: 'NoCpu',
      skipped: [
        { name: 'app', code: 'NoPolicy' },
        { name: 'web', code: 'NoCpu' },
      ],
    });
  });
});

describe('pods that are left as they are', () => {
  it.each<[string, JsonObject]>([
    ['StaticPod', aPod({ annotations: { 'kubernetes.io/config.mirror': 'hash' } })],
    ['WindowsPod', aPod({ spec: { os: { name: 'windows' } } })],
    ['WindowsPod', aPod({ spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } })],
    ['WindowsPod', aPod({ spec: { nodeSelector: { 'beta.kubernetes.io/os': 'windows' } } })],
    ['NodeNameSet', aPod({ spec: { nodeName: 'node-1' } })],
    ['PodLevelResources', aPod({ spec: { resources: { requests: { cpu: '4' } } } })],
    ['ResourceClaims', aPod({ spec: { resourceClaims: [{ name: 'gpu' }] } })],
    [
      'ResourceClaims',
      aPod({ containers: [aContainer({ resources: { ...cpu('1'), claims: [{ name: 'gpu' }] } })] }),
    ],
    ['MalformedPod', aPod({ containers: [aContainer(), aContainer()] })],
    ['MalformedPod', aPod({ containers: [aContainer({ name: '' })] })],
    ['MalformedPod', aPod({ containers: [aContainer({ name: 7 })] })],
    ['NoContainerBoosted', aPod({ containers: [] })],
  ])('%s', (code, pod) => {
    const decision = decide(pod, [everyContainer(100)]);
    expect(decision).toMatchObject({ kind: 'Skip', code, boost: { name: 'boost' } });
    const after = applied(pod, decision.patch);
    expect(resourcesOf(after)).toEqual(resourcesOf(pod));
    expect(readPod(after).annotations?.get(SKIPPED_KEY)).toBe(
      code === 'StaticPod' ? undefined : code,
    );
  });

  it.each<[string, ResourceShape, 'Leave' | 'Boost', string]>([
    ['a Guaranteed one where the settings say so', 'Guaranteed', 'Leave', 'GuaranteedPod'],
    ['no Burstable one', 'request and limit', 'Leave', 'Boost'],
    ['no Guaranteed one otherwise', 'Guaranteed', 'Boost', 'Boost'],
  ])('%s', (_what, shape, guaranteed, expected) => {
    const pod = aPod({ containers: [aContainer({ resources: RESOURCE_SHAPES[shape] })] });
    const decision = decide(pod, [everyContainer(100)], { guaranteed });
    expect('code' in decision ? decision.code : decision.kind).toBe(expected);
  });

  it.each([
    ['an empty node name, as a Go client writes it', { nodeName: '' }],
    ['Linux', { os: { name: 'linux' } }],
    ['pod-level resources that are empty', { resources: {} }],
    ['no resource claims', { resourceClaims: [] }],
  ])('not for %s', (_what, spec) => {
    expect(decide(aPod({ spec }), [aBoost()]).kind).toBe('Boost');
  });
});

describe('labels and annotations', () => {
  const wanted = { [BOOST_KEY]: 'boost' };

  it('are added to those of the pod, with the record', () => {
    const pod = aPod({ annotations: { team: 'a' } });
    const after = readPod(admitted(pod, [aBoost({ metadata: { uid: 'u', generation: 4 } })]));
    expect(Object.fromEntries(after.labels ?? [])).toEqual({ app: 'app', ...wanted });
    expect(after.annotations?.get('team')).toBe('a');
    expect(JSON.parse(after.annotations?.get(BOOST_KEY) ?? '')).toEqual({
      state: 'Active',
      timestamp: '2026-06-01T12:00:00.000Z',
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
      boostedCPURequests: { app: '500m' },
      boostedCPULimits: { app: '2' },
      uid: 'u',
      generation: 4,
    });
  });

  it.each([
    ['absent', {}],
    ['null', { labels: null, annotations: null }],
    ['empty', { labels: {}, annotations: {} }],
    ['of the wrong kind', { labels: [], annotations: 'none' }],
  ])('may be %s', (_what, metadata) => {
    const pod = { ...aPod(), metadata };
    const decision = decide(pod, [{ ...aBoost(), selector: {} }]);
    expect(decision.kind).toBe('Boost');
    const after = readPod(applied(pod, decision.patch));
    expect(Object.fromEntries(after.labels ?? [])).toEqual(wanted);
    expect([...(after.annotations?.keys() ?? [])]).toEqual([BOOST_KEY]);
  });

  it('lose the reason for skipping that a copied manifest carries', () => {
    const pod = aPod({ annotations: { [SKIPPED_KEY]: 'NoCpu' } });
    expect(readPod(admitted(pod, [aBoost()])).annotations?.has(SKIPPED_KEY)).toBe(false);
  });

  it('keep only the original that the boost left alone, not a boosted value', () => {
    const pod = withResources(cpu('2', '2500m'), cpu('1'));
    const after = admitted(pod, [fixed('1', '3')]);
    expect(recordIn(after)).toMatchObject({
      initCPURequests: { app: '2' },
      initCPULimits: { app: '2500m' },
      boostedCPULimits: { app: '3' },
    });
    expect(recordIn(after)).not.toHaveProperty('boostedCPURequests');
  });
});

describe('called on a pod that carries a record', () => {
  const pod = withResources(cpu('250m', '1'), cpu('1'));

  it('does nothing on its own output', () => {
    const once = admitted(pod, [aBoost()]);
    expect(decide(once, [aBoost()])).toMatchObject({ kind: 'AlreadyBoosted', patch: [] });
  });

  it('does nothing on its own output as the API server has rewritten it', () => {
    const large = withResources(cpu('500', '600'));
    const once = admitted(large, [aBoost()]);
    const stored = withResources(cpu('1k', '1200'));
    const metadata: unknown = once.metadata;
    expect(decide({ ...stored, metadata }, [aBoost()]).kind).toBe('AlreadyBoosted');
  });

  it('does nothing for a copied manifest, later', () => {
    const copy = admitted(pod, [aBoost()]);
    const decision = decideBoost({
      pod: copy,
      namespace: 'default',
      boosts: [compileBoost(aBoost())],
      now: NOW + 86_400_000,
    });
    expect(decision.kind).toBe('AlreadyBoosted');
  });

  it('boosts a container that another webhook has added, and keeps the originals of the first', () => {
    const boost = everyContainer(100);
    const first = admitted(withResources(cpu('250m', '1')), [boost]);
    const added = withResources(cpu('500m', '2'), cpu('1', '3'));
    const metadata: unknown = first.metadata;
    const second = admitted({ ...added, metadata }, [boost]);
    expect(resourcesOf(second)).toEqual([cpu('500m', '2'), cpu('2', '6')]);
    expect(recordIn(second)).toMatchObject({
      initCPURequests: { app: '250m', web: '1' },
      initCPULimits: { app: '1', web: '3' },
    });
    expect(decide(second, [boost]).kind).toBe('AlreadyBoosted');
  });

  it('keeps what the record says of a container that is not boosted any more', () => {
    const copied = admitted(withResources(cpu('250m', '1'), cpu('1', '3')), [everyContainer(100)]);
    const webOnly = aBoost({ containerPolicies: [percentageIncrease('web', 100)] });
    expect(recordIn(admitted(copied, [webOnly]))).toMatchObject({
      initCPURequests: { app: '250m', web: '1' },
      boostedCPURequests: { app: '500m', web: '2' },
    });
    const halfBoosted = admitted(copied, [
      aBoost({ containerPolicies: [percentageIncrease('web', 50)] }),
    ]);
    expect(recordIn(halfBoosted)).toMatchObject({
      initCPURequests: { app: '250m', web: '1' },
      boostedCPURequests: { app: '500m', web: '2' },
    });
  });

  it.each([
    ['more', 200, cpu('750m', '3')],
    ['less, which lowers nothing', 50, cpu('500m', '2')],
  ])('keeps the originals when the boost has come to give %s', (_what, percent, resources) => {
    const once = admitted(withResources(cpu('250m', '1')), [everyContainer(100)]);
    const twice = admitted(once, [everyContainer(percent)]);
    expect(resourcesOf(twice)).toEqual([resources]);
    expect(recordIn(twice)).toMatchObject({
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '1' },
    });
    expect(decide(twice, [everyContainer(percent)]).kind).toBe('AlreadyBoosted');
  });

  it('gives less by now where more would be refused', () => {
    const once = admitted(withResources(cpu('250m', '1')), [everyContainer(300)]);
    const limitRanges = [range({ max: { cpu: '3' } })];
    const twice = applied(once, decide(once, [everyContainer(100)], { limitRanges }).patch);
    expect(resourcesOf(twice)).toEqual([cpu('500m', '2')]);
    expect(recordIn(twice)).toMatchObject({ initCPULimits: { app: '1' } });
  });

  it('keeps the words of the pod where a record says the same in others', () => {
    const record = { initCPURequests: { app: '0.25' }, boostedCPURequests: { app: '250m' } };
    const annotations = { [BOOST_KEY]: JSON.stringify(record) };
    const after = admitted(aPod({ annotations }), [fixed('100m', '2')]);
    expect(recordIn(after)).toMatchObject({ initCPURequests: { app: '250m' } });
    expect(decide(after, [fixed('100m', '2')]).kind).toBe('AlreadyBoosted');
  });

  it('takes a value that somebody has changed since for the original', () => {
    const boost = everyContainer(100);
    const metadata: unknown = admitted(withResources(cpu('250m', '1')), [boost]).metadata;
    const changed = { ...withResources(cpu('500m', '3')), metadata };
    const after = admitted(changed, [boost]);
    expect(resourcesOf(after)).toEqual([cpu('500m', '6')]);
    expect(recordIn(after)).toMatchObject({
      initCPURequests: { app: '250m' },
      initCPULimits: { app: '3' },
      boostedCPULimits: { app: '6' },
    });
  });

  describe('gives a container its own CPU back that may not be boosted after all:', () => {
    const both = [cpu('250m', '1'), cpu('1', '3')] as const;
    const once = admitted(withResources(...both), [everyContainer(100)]);

    it('another webhook has made its resize restart it', () => {
      const [first, second] = itemsOf(fieldsOf(once.spec).get('containers'));
      const restarting = {
        ...once,
        spec: {
          ...Object.fromEntries(fieldsOf(once.spec)),
          containers: [
            {
              ...Object.fromEntries(fieldsOf(first)),
              resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
            },
            second,
          ],
        },
      };
      const twice = admitted(restarting, [everyContainer(100)]);
      expect(resourcesOf(twice)).toEqual([cpu('250m', '1'), cpu('2', '6')]);
      expect(recordIn(twice)).toMatchObject({ initCPURequests: { web: '1' } });
      expect(recordIn(twice)).not.toHaveProperty('initCPURequests.app');
      expect(decide(twice, [everyContainer(100)]).patch).toEqual([]);
    });

    it('a quota that counts it was made meanwhile, and the marker goes with the last', () => {
      const quotas = [{ spec: { hard: { 'requests.cpu': '9', 'limits.cpu': '9' } } }];
      const decision = decide(once, [everyContainer(100)], { quotas });
      const twice = applied(once, decision.patch);
      expect(decision).toMatchObject({ kind: 'Skip', code: 'QuotaPresent' });
      expect(resourcesOf(twice)).toEqual(both);
      expect(twice.metadata).toMatchObject({ annotations: { [SKIPPED_KEY]: 'QuotaPresent' } });
      expect(hasMarker(twice)).toBe(false);
    });

    it('but not one that no policy is for: its record says when', () => {
      const other = aBoost({ containerPolicies: [percentageIncrease('none', 100)] });
      expect(resourcesOf(admitted(once, [other]))).toEqual(resourcesOf(once));
    });

    it('and leaves it where half of it was changed and the other half does not fit any more', () => {
      const record = {
        initCPURequests: { app: '250m' },
        initCPULimits: { app: '300m' },
        boostedCPURequests: { app: '500m' },
        boostedCPULimits: { app: '1' },
      };
      const changed = withRecord(withResources(cpu('400m', '1')), record);
      const quotas = [{ spec: { hard: { 'requests.cpu': '9', 'limits.cpu': '9' } } }];
      const after = applied(changed, decide(changed, [everyContainer(100)], { quotas }).patch);
      expect(resourcesOf(after)).toEqual([cpu('400m', '1')]);
    });

    it('and leaves it where the namespace would refuse what its record says', () => {
      const record = {
        initCPURequests: { app: '1m' },
        boostedCPURequests: { app: '250m' },
      };
      const forged = withRecord(withResources(cpu('250m', '1')), record);
      const limitRanges = [range({ min: { cpu: '100m' }, max: { cpu: '1' } })];
      const after = applied(forged, decide(forged, [everyContainer(100)], { limitRanges }).patch);
      expect(resourcesOf(after)).toEqual([cpu('250m', '1')]);
    });
  });

  it.each<[string, JsonObject]>([
    [
      'an original above the present value',
      { initCPURequests: { app: '8' }, boostedCPURequests: { app: '250m' } },
    ],
    [
      'boosted values that are not there',
      { initCPURequests: { app: '125m' }, boostedCPURequests: { app: '9' } },
    ],
    [
      'originals of other containers',
      { initCPURequests: { other: '1m' }, boostedCPURequests: { other: '2m' } },
    ],
  ])('believes no forged record: %s', (_what, record) => {
    const forged = aPod({ annotations: { [BOOST_KEY]: JSON.stringify(record) } });
    const after = admitted(forged, [aBoost()]);
    expect(resourcesOf(after)).toEqual(resourcesOf(admitted(aPod(), [aBoost()])));
    expect(recordIn(after)).toMatchObject({ initCPURequests: { app: '250m' } });
  });

  it.each(['', 'junk', '[]', '{"state":"Unknown"}', '{}', '{"state":"Active"}'])(
    'boosts as if the unusable record %j were not there',
    (text) => {
      const decision = decide(aPod({ annotations: { [BOOST_KEY]: text } }), [aBoost()]);
      expect(decision.kind).toBe('Boost');
    },
  );

  it('leaves a pod alone that upstream has boosted in the same admission', () => {
    const record = { timestamp: 'x', initCPURequests: { app: '100m' }, initCPULimits: null };
    const theirs = aPod({ annotations: { [BOOST_KEY]: JSON.stringify(record) } });
    expect(decide(theirs, [aBoost()])).toMatchObject({ code: 'BoostedByOther', patch: [] });
  });
});

describe('a pod without room for the record', () => {
  const KIB = 1_024;

  it.each<[string, Readonly<Record<string, string>>]>([
    ['in its annotations', { big: 'x'.repeat(256 * KIB - 500) }],
    ['in its annotations, counted in bytes', { big: 'ü'.repeat(128 * KIB - 250) }],
  ])('%s is left as it is, without even the reason', (_what, annotations) => {
    const decision = decide(aPod({ annotations }), [aBoost()]);
    expect(decision).toMatchObject({ kind: 'Skip', code: 'NoRoomForRecord', patch: [] });
  });

  it('is boosted while there is room', () => {
    const annotations = { big: 'x'.repeat(250 * KIB) };
    expect(decide(aPod({ annotations }), [aBoost()]).kind).toBe('Boost');
  });

  it('that could be read again is left as it is, with the reason', () => {
    const containers = Array.from({ length: 300 }, (_, index) =>
      aContainer({ name: `container-${index}-${'x'.repeat(48)}` }),
    );
    const decision = decide(aPod({ containers }), [everyContainer(100)]);
    expect(decision).toMatchObject({ kind: 'Skip', code: 'NoRoomForRecord' });
    expect(decision.patch).toHaveLength(1);
  });
});

describe('which boost', () => {
  const dated = (name: string, percent: number, creationTimestamp?: string) =>
    aBoost({
      name,
      metadata: creationTimestamp === undefined ? {} : { creationTimestamp },
      containerPolicies: [percentageIncrease('app', percent)],
    });
  const first = '2026-01-01T00:00:00Z';
  const second = '2026-01-01T00:00:01Z';

  it.each<[string, readonly JsonObject[], string]>([
    ['the oldest', [dated('a', 100, second), dated('b', 300, first)], 'b'],
    ['of one age the first by name', [dated('b', 300, first), dated('a', 100, first)], 'a'],
    ['one with a date before one without', [dated('a', 100), dated('b', 300, second)], 'b'],
    ['without dates the first by name', [dated('b', 300), dated('a', 100)], 'a'],
  ])('%s, in whatever order they come', (_what, boosts, winner) => {
    for (const order of [boosts, [...boosts].reverse()]) {
      expect(decide(aPod(), order)).toMatchObject({ kind: 'Boost', boost: { name: winner } });
    }
  });

  it('passes over boosts that are invalid, select other pods, or are in other namespaces', () => {
    const boosts = [
      { ...dated('a', 0, first) },
      { ...dated('b', 1, first), selector: { matchLabels: { app: 'other' } } },
      aBoost({ name: 'c', namespace: 'other', metadata: { creationTimestamp: first } }),
      dated('d', 100, second),
    ];
    expect(decide(aPod(), boosts)).toMatchObject({ kind: 'Boost', boost: { name: 'd' } });
    expect(decide(aPod(), boosts.slice(0, 3))).toMatchObject({
      kind: 'Skip',
      code: 'NoBoostMatches',
      patch: [],
    });
  });

  it('goes by the namespace of the request, not that of the manifest', () => {
    expect(decide(aPod({ namespace: 'other' }), [aBoost()]).kind).toBe('Boost');
    expect(decide(aPod(), [aBoost({ namespace: 'other' })]).kind).toBe('Skip');
  });
});

describe('in a namespace with a ResourceQuota', () => {
  const quota = (...hard: readonly string[]) => ({
    spec: { hard: Object.fromEntries(hard.map((name) => [name, '10'])) },
  });

  it.each<[string, JsonObject, JsonObject]>([
    ['on memory: raised as ever', quota('requests.memory'), cpu('500m', '2')],
    ['on CPU requests: limits alone', quota('requests.cpu'), cpu('250m', '2')],
    ['on cpu, which means requests: limits alone', quota('cpu'), cpu('250m', '2')],
    ['on CPU limits: requests alone', quota('limits.cpu'), cpu('500m', '1')],
  ])('%s', (_what, present, expected) => {
    const pod = withResources(cpu('250m', '1'));
    const quotas = [present];
    const after = admitted(pod, [aBoost()], { quotas });
    expect(resourcesOf(after)).toEqual([expected]);
    expect(decide(after, [aBoost()], { quotas }).kind).toBe('AlreadyBoosted');
  });

  it.each<[string, JsonObject, JsonObject]>([
    ['on both', quota('cpu', 'limits.cpu'), withResources(cpu('250m', '1'))],
    ['on limits, with a Guaranteed pod', quota('limits.cpu'), withResources(cpu('1', '1'))],
    ['on requests, with a Guaranteed pod', quota('cpu'), withResources(cpu('1', '1'))],
    ['on requests, with no limit', quota('cpu'), withResources(cpu('1'))],
    ['on limits, with no room below', quota('limits.cpu'), withResources(cpu('1', '1500m'))],
  ])('%s: left alone', (_what, present, pod) => {
    expect(decide(pod, [aBoost()], { quotas: [present] })).toMatchObject({
      kind: 'Skip',
      code: 'QuotaPresent',
    });
  });
});

describe('in a namespace with a LimitRange', () => {
  it.each<[string, JsonObject, JsonObject, 'Boost' | 'Skip']>([
    ['a maximum that is kept', cpu('250m', '1'), range({ max: { cpu: '2' } }), 'Boost'],
    ['a maximum that is exceeded', cpu('250m', '1'), range({ max: { cpu: '1999m' } }), 'Skip'],
    [
      'a ratio that is kept',
      cpu('250m', '1'),
      range({ maxLimitRequestRatio: { cpu: '4' } }),
      'Boost',
    ],
    [
      'a maximum of the pod',
      cpu('250m', '1'),
      range({ type: 'Pod', max: { cpu: '1500m' } }),
      'Skip',
    ],
    ['a maximum of memory', cpu('250m', '1'), range({ max: { memory: '1Mi' } }), 'Boost'],
  ])('%s', (_what, resources, limitRange, kind) => {
    const pod = withResources(resources);
    const decision = decide(pod, [aBoost()], { limitRanges: [limitRange] });
    expect(decision).toMatchObject(
      kind === 'Boost' ? { kind } : { kind, code: 'LimitRangeExceeded' },
    );
  });

  it('that one container would exceed: the next one is judged as if nobody had tried', () => {
    const pod = withResources(cpu('1', '2'), cpu('250m', '500m'));
    const limitRanges = [range({ max: { cpu: '2' } })];
    const decision = decide(pod, [everyContainer(100)], { limitRanges });
    expect(codesOf(decision)).toEqual([{ name: 'app', code: 'LimitRangeExceeded' }]);
    expect(resourcesOf(applied(pod, decision.patch))).toEqual([cpu('1', '2'), cpu('500m', '1')]);
  });

  it.each<[string, JsonObject]>([
    ['a ratio', range({ maxLimitRequestRatio: { cpu: '3' } })],
    ['a minimum', range({ min: { cpu: '300m' } })],
  ])('%s that the originals break: the boost could not be taken back', (_what, limitRange) => {
    const pod = withResources(cpu('250m', '1'));
    const decision = decide(pod, [fixed('500m')], { limitRanges: [limitRange] });
    expect(decision).toMatchObject({ kind: 'Skip', code: 'LimitRangeExceeded' });
  });
});

describe('what is no pod', () => {
  it.each([undefined, null, 7, 'pod', [], {}, { metadata: null }, { metadata: [] }, { spec: [] }])(
    'is left as it is: %j',
    (pod) => {
      const everything = { ...aBoost(), selector: {} };
      expect(decide(pod, [everything])).toMatchObject({ kind: 'Skip', patch: [] });
    },
  );
});

describe('a boost that nobody could take back', () => {
  const nobody: WayBack = { controller: 'Missing', notRevertible: new Set() };
  const named = (...names: readonly string[]): WayBack => ({
    controller: 'Acting',
    notRevertible: new Set(names),
  });

  it.each<[string, WayBack]>([
    ['NoController', nobody],
    ['NotRevertible', named('boost')],
    ['NoController', { ...nobody, notRevertible: new Set(['boost']) }],
  ])('is not given: %s', (code, wayBack) => {
    expect(decide(aPod(), [aBoost()], { wayBack })).toMatchObject({ kind: 'Skip', code });
    expect(admitted(aPod(), [aBoost()], { wayBack })).toEqual(
      aPod({ annotations: { [SKIPPED_KEY]: code } }),
    );
  });

  it.each([
    ['another boost', named('other')],
    ['no boost', named()],
    ['nothing', undefined],
  ])('does not hold up this one, where what is known is about %s', (_what, wayBack) => {
    const more = wayBack === undefined ? {} : { wayBack };
    expect(decide(aPod(), [aBoost()], more).kind).toBe('Boost');
  });

  it('is not the reason where the pod could not be boosted anyway', () => {
    const pod = aPod({ spec: { nodeName: 'node' } });
    expect(decide(pod, [aBoost()], { wayBack: nobody })).toMatchObject({ code: 'NodeNameSet' });
  });
});
