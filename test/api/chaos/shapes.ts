/** The pods and boosts of a chaos run: what is created, and what a boost may make of it. */
import { fieldsOf, itemsOf, textOf } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { aContainer, aPod } from '../../support/builders';
import type { ResourceLists } from '../../support/builders';

export const NAMESPACE = 'chaos';

export const SHAPES = [
  'Guaranteed',
  'Burstable',
  'RequestOnly',
  'TwoContainers',
  'BesideAnother',
  'NoCpu',
  'Unselected',
] as const;
export type Shape = (typeof SHAPES)[number];

export const BOOSTS = ['until-ready', 'timed', 'ready-or-timed', 'without-limits'] as const;
export type BoostName = (typeof BOOSTS)[number];

/** What of a boost a chaos run edits. */
export interface BoostSpec {
  readonly percentage: number;
  /** Undefined where only Ready ends it. */
  readonly seconds: number | undefined;
  readonly endsWhenReady: boolean;
  readonly cpuLimits: 'Raise' | 'Remove';
}

/** Some of them last longer than it takes to catch up with a pod. */
export const FIRST_SPECS: Readonly<Record<BoostName, BoostSpec>> = {
  'until-ready': {
    percentage: 100,
    seconds: undefined,
    endsWhenReady: true,
    cpuLimits: 'Raise',
  },
  timed: { percentage: 50, seconds: 24, endsWhenReady: false, cpuLimits: 'Raise' },
  'ready-or-timed': { percentage: 200, seconds: 30, endsWhenReady: true, cpuLimits: 'Raise' },
  'without-limits': { percentage: 100, seconds: 30, endsWhenReady: true, cpuLimits: 'Remove' },
};

/** Containers of this name no boost selects. */
const LEFT_ALONE = 'proxy';
const LABEL = 'chaos';

const MEMORY = { memory: '64Mi' };

const CONTAINERS: Readonly<Record<Shape, Readonly<Record<string, ResourceLists>>>> = {
  Guaranteed: {
    app: { requests: { cpu: '500m', ...MEMORY }, limits: { cpu: '500m', ...MEMORY } },
  },
  Burstable: { app: { requests: { cpu: '250m', ...MEMORY }, limits: { cpu: '1', ...MEMORY } } },
  RequestOnly: { app: { requests: { cpu: '200m' } } },
  TwoContainers: {
    app: { requests: { cpu: '100m' }, limits: { cpu: '400m' } },
    worker: { requests: { cpu: '150m' } },
  },
  BesideAnother: {
    app: { requests: { cpu: '300m' }, limits: { cpu: '600m' } },
    [LEFT_ALONE]: { requests: { cpu: '50m' }, limits: { cpu: '100m' } },
  },
  NoCpu: { app: { requests: MEMORY, limits: MEMORY } },
  Unselected: { app: { requests: { cpu: '250m' }, limits: { cpu: '1' } } },
};

/** Whether a boost selects pods of this shape and has something to raise. */
export function isEligible(shape: Shape): boolean {
  return shape !== 'NoCpu' && shape !== 'Unselected';
}

export function podManifest(name: string, shape: Shape, boost: BoostName): JsonObject {
  return aPod({
    namespace: NAMESPACE,
    name,
    labels: { [LABEL]: shape === 'Unselected' ? 'none' : boost },
    containers: Object.entries(CONTAINERS[shape]).map(([container, resources]) =>
      aContainer({ name: container, resources }),
    ),
  });
}

export function boostManifest(name: BoostName, spec: BoostSpec): JsonObject {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1alpha1',
    kind: 'StartupCPUBoost',
    metadata: { name, namespace: NAMESPACE },
    selector: { matchLabels: { [LABEL]: name } },
    spec: boostSpecBody(spec),
  };
}

export function boostSpecBody({
  percentage,
  seconds,
  endsWhenReady,
  cpuLimits,
}: BoostSpec): JsonObject {
  return {
    resourcePolicy: {
      cpuLimits,
      containerPolicies: [
        {
          matchContainers: { type: 'RegexName', value: '^(app|worker)$' },
          percentageIncrease: { value: percentage },
        },
      ],
    },
    durationPolicy: {
      ...(seconds === undefined ? {} : { fixedDuration: { unit: 'Seconds', value: seconds } }),
      ...(endsWhenReady ? { podCondition: { type: 'Ready', status: 'True' } } : {}),
    },
  };
}

/** Reads back what `boostSpecBody` wrote; undefined for anything else. */
export function readBoostSpec(spec: unknown): BoostSpec | undefined {
  const fields = fieldsOf(spec);
  const resources = fieldsOf(fields.get('resourcePolicy'));
  const [policy] = itemsOf(resources.get('containerPolicies'));
  const percentage = fieldsOf(fieldsOf(policy).get('percentageIncrease')).get('value');
  const duration = fieldsOf(fields.get('durationPolicy'));
  const seconds = fieldsOf(duration.get('fixedDuration')).get('value');
  if (typeof percentage !== 'number') return undefined;
  return {
    percentage,
    seconds: typeof seconds === 'number' ? seconds : undefined,
    endsWhenReady: duration.has('podCondition'),
    cpuLimits: resources.get('cpuLimits') === 'Remove' ? 'Remove' : 'Raise',
  };
}

/** Milli-cores; a key that is absent is undefined. */
export interface Cpu {
  readonly request: number | undefined;
  readonly limit: number | undefined;
}

/** By container. */
export type CpuMap = Readonly<Record<string, Cpu>>;

/** Of any pod, from its spec. */
export function cpuOf(pod: unknown): CpuMap {
  const spec = fieldsOf(fieldsOf(pod).get('spec'));
  return Object.fromEntries(
    itemsOf(spec.get('containers')).map((container) => {
      const fields = fieldsOf(container);
      const resources = fieldsOf(fields.get('resources'));
      const at = (list: string): number | undefined =>
        milliOf(fieldsOf(resources.get(list)).get('cpu'));
      return [textOf(fields.get('name')) ?? '', { request: at('requests'), limit: at('limits') }];
    }),
  );
}

/**
 * The arithmetic of a boost, a second time and simply: what it makes of these originals. A resize can
 * take no limit away, and a Guaranteed pod needs its own.
 */
export function boostedCpu(
  originals: CpuMap,
  { percentage, cpuLimits }: Pick<BoostSpec, 'percentage' | 'cpuLimits'>,
  when: 'AtCreation' | 'InPlace',
): CpuMap {
  const raise = (value: number | undefined): number | undefined =>
    value === undefined ? undefined : Math.ceil((value * (100 + percentage)) / 100);
  const isGuaranteed = Object.values(originals).every(({ request, limit }) => request === limit);
  const isRemoved = cpuLimits === 'Remove' && when === 'AtCreation' && !isGuaranteed;
  const boosted = ({ request, limit }: Cpu): Cpu => ({
    request: raise(request),
    limit: isRemoved ? undefined : raise(limit),
  });
  return Object.fromEntries(
    Object.entries(originals).map(([container, cpu]) => [
      container,
      container === LEFT_ALONE ? cpu : boosted(cpu),
    ]),
  );
}

export function isSameCpu(one: CpuMap, other: CpuMap): boolean {
  return formatCpuMap(one) === formatCpuMap(other);
}

/** Such as `app 250m/1000m, proxy 50m/-`. */
export function formatCpuMap(cpu: CpuMap): string {
  const text = (value: number | undefined): string => (value === undefined ? '-' : `${value}m`);
  return Object.entries(cpu)
    .map(([container, { request, limit }]) => `${container} ${text(request)}/${text(limit)}`)
    .sort()
    .join(', ');
}

/** The quantities that occur here: whole cores and milli-cores. */
function milliOf(value: unknown): number | undefined {
  const match = typeof value === 'string' ? /^(\d+)(m?)$/.exec(value) : null;
  if (match === null) return undefined;
  return Number(match[1]) * (match[2] === 'm' ? 1 : 1_000);
}
