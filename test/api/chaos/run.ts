/** A whole chaos run: plays a plan on a stage, waits until all is quiet, and judges the history. */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BOOST_KEY } from '../../../src/boost-engine';
import { PODS } from '../../../src/kube';
import type { KubeClient } from '../../../src/kube';
import { readAuditLog } from '../../support/auditLog';
import { Faults } from './faults';
import { checkHistory } from './history';
import type { HistoryReport, HistoryRules } from './history';
import type { Plan } from './plan';
import { PodLives } from './podLives';
import { persist } from './retries';
import { NAMESPACE } from './shapes';
import { roleOfUser, startStage } from './stage';
import type { ChaosStage } from './stage';

export interface ChaosResult {
  readonly plan: Plan;
  readonly tookMs: number;
  readonly faults: ReadonlyMap<string, number>;
  readonly history: HistoryReport;
  /** Of the processes: ends that nobody asked for, and errors in their logs. */
  readonly problems: readonly string[];
  /** Where the logs are; undefined where they were not kept. */
  readonly logFolder: string | undefined;
}

export type Say = (line: string) => void;

const PROGRESS_EVERY_MS = 5_000;
const LOOK_AGAIN_MS = 250;

/** A silent watch is noticed after 150 s (IDLE_MS of src/kube/resourceWatch.ts), and then a moment. */
const STALE_MS = 170_000;
/** After the last life: what a stale leader has not seen is seen by then, and the pods get their CPU back. */
const QUIET_WITHIN_MS = 240_000;

/**
 * A controller that acts takes a moment; after a kill there is none for 6 s, and for longer where the
 * API server is away or the next one is killed, too. Less than UNBOOSTED_START_MS.
 */
const CATCH_UP_WITHIN_MS = 20_000;

const RULES: HistoryRules = {
  roleOf: roleOfUser,
  catchUpWithinMs: CATCH_UP_WITHIN_MS,
  staleMs: STALE_MS,
  deletedGraceMs: 5_000,
};

export interface ChaosOptions {
  readonly say: Say;
  /** `OnFailure` unless given. */
  readonly keepLogs?: 'Always' | 'OnFailure';
}

/** What an empty Secret is to be answered with. */
const EXPECTED_ERRORS: readonly unknown[] = [
  'the certificate that is served stays: there is no better one',
];

export async function runChaos(plan: Plan, options: ChaosOptions): Promise<ChaosResult> {
  const { say, keepLogs: when = 'OnFailure' } = options;
  const stage = await startStage();
  const startedAt = Date.now();
  const lives = new PodLives(stage);
  const faults = new Faults(stage);
  const watching = new AbortController();
  const progress = sayProgress({ stage, lives, faults, startedAt, say }, watching.signal);
  try {
    await Promise.all([lives.play(plan.pods, startedAt), faults.play(plan.faults, startedAt)]);
    await untilQuiet(stage.client);
    watching.abort();
    await progress;
    const result = await judge(stage, { plan, faults, startedAt });
    if (when === 'OnFailure' && isClean(result)) return result;
    return { ...result, logFolder: await keepLogs(stage, plan.seed) };
  } catch (error) {
    say(`the run broke off; the logs are in ${await keepLogs(stage, plan.seed)}`);
    throw error;
  } finally {
    watching.abort();
    await stage.stop();
  }
}

async function judge(
  stage: ChaosStage,
  { plan, faults, startedAt }: Pick<Watched, 'faults' | 'startedAt'> & { readonly plan: Plan },
): Promise<ChaosResult> {
  const final = (await persist(() => stage.client.list(PODS, { namespace: NAMESPACE }))).items;
  const listedAt = Date.now();
  await stage.stopReplicas();
  const { events, tornLines } = await readAuditLog(join(stage.controlPlane.dir, 'logs'));
  const history = checkHistory({ events, pods: plan.pods, final, listedAt, rules: RULES });
  const problems = [...problemsOf(stage), ...tornProblem(tornLines, faults)];
  const tookMs = listedAt - startedAt;
  return { plan, tookMs, faults: faults.done, history, problems, logFolder: undefined };
}

/** No pod is boosted any more; or a while has passed, and the history tells. */
async function untilQuiet(client: KubeClient): Promise<void> {
  const end = Date.now() + QUIET_WITHIN_MS;
  while (Date.now() < end && (await persist(() => boostedNow(client))) > 0) {
    await delay(LOOK_AGAIN_MS);
  }
}

async function boostedNow(client: KubeClient): Promise<number> {
  const selection = { namespace: NAMESPACE, labelSelector: BOOST_KEY };
  return (await client.list(PODS, selection)).items.length;
}

interface Watched {
  readonly stage: ChaosStage;
  readonly lives: PodLives;
  readonly faults: Faults;
  readonly startedAt: number;
  readonly say: Say;
}

async function sayProgress(watched: Watched, signal: AbortSignal): Promise<void> {
  const { stage, lives, faults, startedAt, say } = watched;
  while (!signal.aborted) {
    await delay(PROGRESS_EVERY_MS, undefined, { signal }).catch(() => undefined);
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    const boosted = await boostedNow(stage.client).catch(() => '?');
    const up = stage.replicas.filter(({ isUp }) => isUp).length;
    const done = [...faults.done.values()].reduce((sum, count) => sum + count, 0);
    say(
      `${seconds} s: ${lives.created} pods, ${lives.boosted} of them boosted at admission, ` +
        `${lives.unboosted} not; ${lives.running} starting, ${boosted} boosted now; ` +
        `${done} faults; ${up} of ${stage.replicas.length} processes up`,
    );
  }
}

/** A kill of the API server may cut one line short; more are events that we cannot read. */
function tornProblem(tornLines: number, { done }: Faults): readonly string[] {
  const kills = done.get('restart API server') ?? 0;
  return tornLines <= kills ? [] : [`${tornLines} lines of the audit log cannot be read`];
}

function problemsOf({ replicas }: ChaosStage): readonly string[] {
  return replicas.flatMap((replica) => [
    ...replica.problems,
    ...replica
      .logs()
      .filter(({ level, message }) => level === 'error' && !EXPECTED_ERRORS.includes(message))
      .map((line) => `${replica.name} logged ${JSON.stringify(line)}`),
  ]);
}

async function keepLogs(stage: ChaosStage, seed: number): Promise<string> {
  const folder = join(tmpdir(), `startup-cpu-boost-chaos-${seed}`);
  await mkdir(folder, { recursive: true });
  await cp(join(stage.controlPlane.dir, 'logs'), folder, { recursive: true });
  for (const replica of stage.replicas) {
    await writeFile(join(folder, `${replica.name}.log`), replica.output());
  }
  return folder;
}

export function isClean({ history, problems }: ChaosResult): boolean {
  return history.violations.length === 0 && problems.length === 0;
}
