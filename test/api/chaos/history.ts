/** Judges a whole chaos run by what the API server recorded: pure, from audit events and final pods. */
import { fieldsOf, textOf } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import type { AuditEvent } from '../../support/auditLog';
import { boostTimelines, endOfBoost, isPresent, mayHaveEnded, specsWithin } from './boostTimeline';
import type { BoostSpan, PodMoments } from './boostTimeline';
import { podTimelines } from './podTimeline';
import type { PodState, PodStep, PodTimeline, Unanswered } from './podTimeline';
import type { PlannedPod } from './plan';
import { boostedCpu, cpuOf, formatCpuMap, isEligible, isSameCpu, podManifest } from './shapes';
import type { CpuMap, Shape } from './shapes';

export interface HistoryInput {
  readonly events: readonly AuditEvent[];
  readonly pods: readonly Pick<PlannedPod, 'name' | 'shape' | 'boost'>[];
  /** All pods that were there in the end, listed at `listedAt` (epoch milliseconds). */
  readonly final: readonly JsonObject[];
  readonly listedAt: number;
  readonly rules: HistoryRules;
}

export interface HistoryRules {
  /** Who a user is; everybody else is `Other`. */
  readonly roleOf: (user: string) => 'admission' | 'controller' | 'Other';
  /**
   * How long a pod that still starts may be without its boost before that counts as missed;
   * undefined where nobody catches up.
   */
  readonly catchUpWithinMs: number | undefined;
  /** How old the knowledge of a process may be: as long as a silent watch goes unnoticed. */
  readonly staleMs: number;
  /** BOOST_DELETED_GRACE_SECONDS. */
  readonly deletedGraceMs: number;
}

export type ViolationKind =
  /** A pod of the plan that the API server never stored: the suite itself is wrong. */
  | 'NotCreated'
  | 'Missed'
  /** Raised to something that its boost did not say, or changed in part. */
  | 'WrongCpu'
  /** Its CPU changed with no request that could have done it. */
  | 'Unexplained'
  | 'RaisedTwice'
  | 'RaisedAfterRevert'
  | 'RevertedTwice'
  /** Reverted without a new generation: a kubelet would not see it. */
  | 'SameGeneration'
  /** Reverted before its boost had ended. */
  | 'EndedEarly'
  | 'LeftBoosted'
  | 'MarkerLeft'
  /** It had more CPU than its own, and nothing on it said so. */
  | 'MarkerLost'
  /** Two controllers undid each other's work. */
  | 'ConflictingWrites'
  /** A pod that is none of ours. */
  | 'Touched'
  | 'OtherFieldChanged'
  | 'AdmissionWrote';

export interface Violation {
  readonly kind: ViolationKind;
  readonly pod: string;
  readonly message: string;
}

export interface PodVerdict {
  readonly pod: string;
  readonly shape: Shape;
  /** `Excused`: it had no boost, and none was due (see `mustBeBoosted`). */
  readonly boosted: 'AtAdmission' | 'CaughtUp' | 'Missed' | 'Excused' | 'NotEligible';
  readonly isReverted: boolean;
  /** From the end of its boost to the accepted resize. */
  readonly delayMs: number | undefined;
}

export interface HistoryReport {
  readonly violations: readonly Violation[];
  readonly verdicts: readonly PodVerdict[];
  /** Writes of controllers that their guards refused. */
  readonly refused: number;
  /** Writes to pods whose answer was lost. */
  readonly unanswered: number;
  /** Accepted writes of a controller while another one held the Lease. */
  readonly byFormerLeader: number;
  /** What happened to the pods that are in `violations`, line by line. */
  readonly histories: ReadonlyMap<string, readonly string[]>;
}

export function checkHistory(input: HistoryInput): HistoryReport {
  const { events, final, listedAt, rules } = input;
  const boosts = boostTimelines(events);
  const timelines = podTimelines(events, final, listedAt);
  const violations: Violation[] = [];
  const verdicts = input.pods.map((pod): PodVerdict => {
    const timeline = timelines.get(pod.name) ?? NOTHING;
    const judge = new PodJudge({ ...pod, timeline, spans: boosts[pod.boost], rules, listedAt });
    const verdict = judge.judge();
    violations.push(...judge.violations);
    return verdict;
  });
  const offending = new Set(violations.map(({ pod }) => pod));
  const all = [...timelines.values()];
  return {
    violations,
    verdicts,
    refused: all
      .flatMap(({ refused }) => refused)
      .filter((user) => rules.roleOf(user) === 'controller').length,
    unanswered: all.flatMap(({ unanswered }) => unanswered).length,
    byFormerLeader: countFormerLeaders(events, rules),
    histories: new Map([...offending].map((pod) => [pod, timelines.get(pod)?.told ?? []] as const)),
  };
}

const NOTHING: PodTimeline = {
  steps: [],
  unanswered: [],
  refused: [],
  scheduledAt: undefined,
  readyAt: undefined,
  deletedAt: undefined,
  told: [],
};

interface JudgedPod extends Pick<PlannedPod, 'name' | 'shape' | 'boost'> {
  readonly timeline: PodTimeline;
  /** Of the boost that selects it. */
  readonly spans: readonly BoostSpan[];
  readonly rules: HistoryRules;
  readonly listedAt: number;
}

/** Walks through the states of one pod. */
class PodJudge {
  readonly violations: Violation[] = [];
  readonly #pod: JudgedPod;
  readonly #originals: CpuMap;
  #phase: 'Original' | 'Boosted' | 'Reverted' = 'Original';
  #boosted: 'AtAdmission' | 'CaughtUp' | undefined;
  #boostedAt = 0;
  #reverts = 0;
  #delayMs: number | undefined;
  /** Who changed its CPU last. */
  #changedBy: string | undefined;

  constructor(pod: JudgedPod) {
    this.#pod = pod;
    this.#originals = cpuOf(podManifest(pod.name, pod.shape, pod.boost));
  }

  judge(): PodVerdict {
    const { name, shape, timeline } = this.#pod;
    const [first, ...later] = timeline.steps;
    if (first === undefined) this.#violate('NotCreated', 'the API server has no trace of it');
    else this.#walk(first, later);
    return {
      pod: name,
      shape,
      boosted: this.#boostedVerdict(first),
      isReverted: this.#phase === 'Reverted',
      delayMs: this.#delayMs,
    };
  }

  #walk(first: PodStep, later: readonly PodStep[]): void {
    this.#begin(first);
    let before = first;
    for (const step of later) {
      this.#judgeWriter(step);
      this.#compare(before, step);
      before = step;
    }
    this.#judgeEnd(before);
  }

  #begin({ at, state }: PodStep): void {
    this.#judgeMark(state);
    if (isSameCpu(state.cpu, this.#originals)) return;
    if (!isEligible(this.#pod.shape)) {
      this.#violate('Touched', `created with ${formatCpuMap(state.cpu)}`);
      return;
    }
    this.#phase = 'Boosted';
    this.#boosted = 'AtAdmission';
    this.#boostedAt = at;
    if (!this.#isBoostOf(state.cpu, at, 'AtCreation')) this.#wrongCpu(state);
  }

  #judgeWriter({ by, action }: PodStep): void {
    const role = this.#pod.rules.roleOf(by);
    if (role === 'admission') this.#violate('AdmissionWrote', `${action} by ${by}`);
    if (role === 'controller' && !isEligible(this.#pod.shape)) {
      this.#violate('Touched', `${action} by ${by}`);
    }
  }

  /** What one write has changed. */
  #compare(before: PodStep, step: PodStep): void {
    if (before.state.rest !== step.state.rest) {
      const [was, is] = difference(before.state.rest, step.state.rest);
      this.#violate('OtherFieldChanged', `${step.action} by ${step.by}: ${was} became ${is}`);
    }
    if (!isSameCpu(before.state.cpu, step.state.cpu)) {
      const writer = this.#writerOf(before, step);
      if (writer === undefined) {
        this.#violate('Unexplained', `${formatCpuMap(step.state.cpu)} after ${step.action}`);
      }
      this.#judgeChange(before.state, step, writer);
      this.#changedBy = writer?.by ?? this.#changedBy;
    }
    this.#judgeMark(step.state);
  }

  /**
   * The resize that changed the CPU: the step itself, or one before it whose answer was lost when the
   * API server ended.
   */
  #writerOf(before: PodStep, step: PodStep): PodStep | Unanswered | undefined {
    if (step.action === 'resize') return step;
    return this.#pod.timeline.unanswered.find(
      ({ action, receivedAt }) =>
        action === 'resize' && receivedAt <= step.at && receivedAt >= before.receivedAt - LATE_MS,
    );
  }

  #judgeChange(
    before: PodState,
    { at, state }: PodStep,
    writer: { readonly by: string } | undefined,
  ): void {
    if (!isEligible(this.#pod.shape)) {
      this.#violate('Touched', `resized to ${formatCpuMap(state.cpu)}`);
    } else if (isSameCpu(state.cpu, this.#originals)) {
      this.#lowered(before, state, at, writer?.by);
    } else {
      this.#raised(state, at, writer?.by);
    }
  }

  #lowered(before: PodState, state: PodState, at: number, by: string | undefined): void {
    this.#reverts += 1;
    if (this.#reverts > 1) this.#violateBy('RevertedTwice', `at ${isoTime(at)}`, by);
    if (state.generation <= before.generation) {
      this.#violate('SameGeneration', `${state.generation} after the resize`);
    }
    this.#phase = 'Reverted';
    this.#judgeTime(at);
  }

  #raised(state: PodState, at: number, by: string | undefined): void {
    if (!this.#isBoostOf(state.cpu, at, 'InPlace')) this.#wrongCpu(state);
    if (this.#phase === 'Boosted') {
      this.#violateBy('RaisedTwice', `to ${formatCpuMap(state.cpu)}`, by);
    }
    if (this.#phase === 'Reverted') {
      this.#violateBy('RaisedAfterRevert', `to ${formatCpuMap(state.cpu)}`, by);
    }
    this.#phase = 'Boosted';
    this.#boosted ??= 'CaughtUp';
    this.#boostedAt = at;
  }

  #judgeTime(at: number): void {
    const { spans, rules, timeline } = this.#pod;
    const { scheduledAt, readyAt } = timeline;
    const moments: PodMoments = { boostedAt: this.#boostedAt, scheduledAt, readyAt };
    if (!mayHaveEnded(spans, moments, at, rules)) {
      this.#violate('EndedEarly', `at ${isoTime(at)}`);
    }
    const end = endOfBoost(spans, moments, rules.deletedGraceMs);
    // Below 0 where it ended by what its boost said a moment ago.
    if (end !== undefined) this.#delayMs = Math.max(0, at - end);
  }

  #judgeMark(state: PodState): void {
    const isRaised = !isSameCpu(state.cpu, this.#originals);
    if (isRaised && !state.isMarked) this.#violate('MarkerLost', formatCpuMap(state.cpu));
    if (state.isMarked && !isEligible(this.#pod.shape)) {
      this.#violate('Touched', 'carries a marker');
    }
  }

  #judgeEnd(last: PodStep): void {
    if (last.action !== 'list') return;
    if (!isSameCpu(last.state.cpu, this.#originals)) {
      this.#violate('LeftBoosted', formatCpuMap(last.state.cpu));
    } else if (last.state.isMarked) {
      this.#violate('MarkerLeft', 'its CPU is back');
    }
  }

  #boostedVerdict(first: PodStep | undefined): PodVerdict['boosted'] {
    if (!isEligible(this.#pod.shape)) return 'NotEligible';
    if (this.#boosted !== undefined) return this.#boosted;
    if (first === undefined || !this.#mustBeBoosted(first)) return 'Excused';
    if (this.#pod.rules.catchUpWithinMs !== undefined) {
      this.#violate('Missed', `created ${isoTime(first.at)}, never boosted`);
    }
    return 'Missed';
  }

  /**
   * Not where its boost was away meanwhile, nor where the pod was deleted or its boost over before
   * anybody could catch up.
   */
  #mustBeBoosted({ receivedAt, at }: PodStep): boolean {
    const { spans, rules, timeline, listedAt } = this.#pod;
    const { scheduledAt, readyAt, deletedAt = listedAt } = timeline;
    const until = at + (rules.catchUpWithinMs ?? 0);
    const moments = { boostedAt: at, scheduledAt, readyAt };
    const end = endOfBoost(spans, moments, rules.deletedGraceMs) ?? listedAt;
    const ends = [deletedAt, readyAt ?? listedAt, end, listedAt];
    return isPresent(spans, receivedAt, until) && Math.min(...ends) > until;
  }

  #isBoostOf(cpu: CpuMap, at: number, when: 'AtCreation' | 'InPlace'): boolean {
    const { spans, rules } = this.#pod;
    return specsWithin(spans, at - rules.staleMs, at).some((spec) =>
      isSameCpu(cpu, boostedCpu(this.#originals, spec, when)),
    );
  }

  #wrongCpu(state: PodState): void {
    this.#violate('WrongCpu', formatCpuMap(state.cpu));
  }

  /** What two controllers do to each other is a fault of its own. */
  #violateBy(kind: ViolationKind, message: string, by: string | undefined): void {
    this.#violate(kind, message);
    const { roleOf } = this.#pod.rules;
    const other = this.#changedBy;
    if (by === undefined || other === undefined || by === other) return;
    if (roleOf(by) === 'controller' && roleOf(other) === 'controller') {
      this.#violate('ConflictingWrites', `${by} after ${other}`);
    }
  }

  #violate(kind: ViolationKind, message: string): void {
    this.violations.push({ kind, pod: this.#pod.name, message });
  }
}

/** Longer than a request takes that is under way when the API server ends. */
const LATE_MS = 60_000;

/** By the holder that each accepted write of the Lease has named. */
function countFormerLeaders(events: readonly AuditEvent[], { roleOf }: HistoryRules): number {
  let holder: string | undefined;
  let count = 0;
  const accepted = events.filter(({ stage, code }) => stage === 'Complete' && code < 300);
  for (const event of [...accepted].sort((a, b) => a.at - b.at)) {
    if (roleOf(event.user) !== 'controller') continue;
    if (event.resource === 'leases') {
      const spec = fieldsOf(fieldsOf(event.response).get('spec'));
      holder = (textOf(spec.get('holderIdentity')) ?? '') === '' ? undefined : event.user;
    } else if (event.resource === 'pods' && holder !== undefined && holder !== event.user) {
      count += 1;
    }
  }
  return count;
}

/** Of two texts from where they differ on; a whole pod is nothing that a person reads. */
function difference(one: string, other: string): readonly [string, string] {
  let from = 0;
  while (from < one.length && one[from] === other[from]) from += 1;
  const excerpt = (text: string): string => text.slice(Math.max(0, from - 40), from + 120);
  return [excerpt(one), excerpt(other)];
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
