/** What a chaos run does and when, made from its seed alone: the pods, their lives, and the faults. */
import { SeededRandom } from './seededRandom';
import { BOOSTS, FIRST_SPECS, SHAPES, isEligible } from './shapes';
import type { BoostName, BoostSpec, Shape } from './shapes';

export interface PlanOptions {
  readonly seed: number;
  /** From the first pod to the last. */
  readonly durationMs: number;
  readonly podsPerSecond: number;
  /** Mean time from one fault to the next. */
  readonly faultEveryMs: number;
}

export interface PlannedPod {
  readonly name: string;
  readonly shape: Shape;
  readonly boost: BoostName;
  /** From the beginning of the run. */
  readonly createAtMs: number;
  readonly bindAfterMs: number;
  readonly runAfterMs: number;
  /** With a boost; one that has none takes longer. Undefined for a pod that is never Ready. */
  readonly readyAfterMs: number | undefined;
  /** From its creation. */
  readonly deleteAfterMs: number | undefined;
}

/** Which replica: one of admission by its place, or a controller by what it does at that moment. */
export type Target =
  | { readonly role: 'admission'; readonly index: number }
  | { readonly role: 'controller'; readonly which: 'Leader' | 'Standby' };

export type Fault =
  /** SIGKILL or SIGTERM, and another one a while after its end. */
  | { readonly kind: 'Kill' | 'Stop'; readonly target: Target; readonly downMs: number }
  /** SIGSTOP, and SIGCONT after a while. */
  | { readonly kind: 'Pause'; readonly target: Target; readonly forMs: number }
  /** Every open connection to the API server goes silent, without an end; new ones work. */
  | { readonly kind: 'Stall'; readonly target: Target }
  | { readonly kind: 'RestartApiServer'; readonly downMs: number }
  /** The Secret that admission serves from is emptied, or the webhooks trust nobody any more. */
  | { readonly kind: 'EmptyServingSecret' | 'BlankBundles' }
  | { readonly kind: 'EditBoost'; readonly boost: BoostName; readonly spec: BoostSpec }
  | { readonly kind: 'RecreateBoost'; readonly boost: BoostName; readonly goneMs: number };

export interface PlannedFault {
  /** From the beginning of the run; the earliest moment, see faults.ts. */
  readonly atMs: number;
  readonly fault: Fault;
}

export interface Plan extends PlanOptions {
  readonly pods: readonly PlannedPod[];
  readonly faults: readonly PlannedFault[];
}

/** Replicas of each role. */
export const REPLICAS = 3;

/** The same options give the same plan. */
export function makePlan(options: PlanOptions): Plan {
  // Of their own, so that more faults do not change the pods.
  const random = new SeededRandom(options.seed);
  const pods = planPods(options, new SeededRandom(random.between(0, 2 ** 31)));
  const faults = planFaults(options, new SeededRandom(random.between(0, 2 ** 31)));
  return { ...options, pods, faults };
}

/** Now and then a Deployment scales up; the other pods come one by one. */
function planPods(options: PlanOptions, random: SeededRandom): readonly PlannedPod[] {
  const pods: PlannedPod[] = [];
  const meanGroup = 1.9;
  let atMs = 0;
  while (atMs < options.durationMs) {
    const group = random.chance(0.1) ? random.between(5, 15) : 1;
    for (let i = 0; i < group; i += 1) pods.push(planPod(pods.length + 1, atMs, random));
    atMs += random.gapMs((meanGroup * 1_000) / options.podsPerSecond);
  }
  return pods;
}

function planPod(number: number, createAtMs: number, random: SeededRandom): PlannedPod {
  const boost = random.pick(BOOSTS);
  const shape = random.chance(0.15)
    ? random.pick(SHAPES.filter((each) => !isEligible(each)))
    : random.pick(SHAPES.filter(isEligible));
  const isNeverReady = boost !== 'until-ready' && random.chance(0.2);
  return {
    name: `pod-${number}`,
    shape,
    boost,
    createAtMs,
    bindAfterMs: random.between(0, 1_000),
    runAfterMs: random.between(50, 500),
    readyAfterMs: isNeverReady ? undefined : random.between(500, 8_000),
    deleteAfterMs: random.chance(0.08) ? random.between(100, 8_000) : undefined,
  };
}

/**
 * From a pack of cards that holds every kind, and the usual ones several times: a short run meets
 * most kinds, whatever the seed.
 */
function planFaults(options: PlanOptions, random: SeededRandom): readonly PlannedFault[] {
  const faults: PlannedFault[] = [];
  let pack: FaultMaker[] = [];
  let atMs = options.faultEveryMs;
  while (atMs < options.durationMs) {
    if (pack.length === 0) pack = random.shuffled(PACK);
    const make = pack.pop();
    if (make !== undefined) faults.push({ atMs, fault: make(random) });
    atMs += Math.round(options.faultEveryMs * (0.5 + random.next()));
  }
  return faults;
}

type FaultMaker = (random: SeededRandom) => Fault;

function admission(random: SeededRandom): Target {
  return { role: 'admission', index: random.between(0, REPLICAS - 1) };
}

const LEADER: Target = { role: 'controller', which: 'Leader' };
const STANDBY: Target = { role: 'controller', which: 'Standby' };

function downMs(random: SeededRandom): number {
  return random.between(200, 4_000);
}

/** Shorter and longer than a Lease lasts. */
function pauseMs(random: SeededRandom): number {
  return random.between(1_000, 12_000);
}

const PACK: readonly FaultMaker[] = [
  (random) => ({ kind: 'Kill', target: admission(random), downMs: downMs(random) }),
  (random) => ({ kind: 'Kill', target: admission(random), downMs: downMs(random) }),
  (random) => ({ kind: 'Stop', target: admission(random), downMs: downMs(random) }),
  (random) => ({ kind: 'Pause', target: admission(random), forMs: pauseMs(random) }),
  (random) => ({ kind: 'Stall', target: admission(random) }),
  (random) => ({ kind: 'Kill', target: LEADER, downMs: downMs(random) }),
  (random) => ({ kind: 'Kill', target: LEADER, downMs: downMs(random) }),
  (random) => ({ kind: 'Stop', target: LEADER, downMs: downMs(random) }),
  (random) => ({ kind: 'Pause', target: LEADER, forMs: pauseMs(random) }),
  (random) => ({ kind: 'Pause', target: LEADER, forMs: pauseMs(random) }),
  () => ({ kind: 'Stall', target: LEADER }),
  (random) => ({ kind: 'Kill', target: STANDBY, downMs: downMs(random) }),
  (random) => ({ kind: 'Pause', target: STANDBY, forMs: pauseMs(random) }),
  (random) => ({ kind: 'RestartApiServer', downMs: random.between(200, 3_000) }),
  () => ({ kind: 'EmptyServingSecret' }),
  () => ({ kind: 'BlankBundles' }),
  editBoost,
  editBoost,
  (random) => ({
    kind: 'RecreateBoost',
    boost: random.pick(BOOSTS),
    // Within and beyond BOOST_DELETED_GRACE_SECONDS.
    goneMs: random.between(300, 9_000),
  }),
];

function editBoost(random: SeededRandom): Fault {
  const boost = random.pick(BOOSTS);
  const first = FIRST_SPECS[boost];
  const percentage = random.pick([50, 100, 150, 200]);
  const seconds = first.seconds === undefined ? undefined : random.between(3, 36);
  return { kind: 'EditBoost', boost, spec: { ...first, percentage, seconds } };
}

/** For counting, such as `kill leader`. */
export function faultName(fault: Fault): string {
  switch (fault.kind) {
    case 'Kill':
    case 'Stop':
    case 'Pause':
    case 'Stall':
      return `${fault.kind.toLowerCase()} ${targetName(fault.target)}`;
    case 'RestartApiServer':
      return 'restart API server';
    case 'EmptyServingSecret':
      return 'empty serving Secret';
    case 'BlankBundles':
      return 'blank caBundles';
    case 'EditBoost':
      return 'edit boost';
    case 'RecreateBoost':
      return 'delete and recreate boost';
  }
}

function targetName(target: Target): string {
  return target.role === 'admission' ? 'admission' : target.which.toLowerCase();
}
