/** What a chaos run has found, as text. */
import type { HistoryReport, PodVerdict } from './history';
import { SHAPES } from './shapes';
import type { ChaosResult } from './run';

/** Enough to see a pattern. */
const MOST_OFFENDERS = 10;

export function describeResult(result: ChaosResult): string {
  const { plan, history, faults, tookMs } = result;
  const { verdicts } = history;
  const count = (isCounted: (verdict: PodVerdict) => boolean): number =>
    verdicts.filter(isCounted).length;
  const shapes = SHAPES.map((shape) => `${shape} ${count((each) => each.shape === shape)}`);
  const total = [...faults.values()].reduce((sum, each) => sum + each, 0);
  const kinds = [...faults].sort().map(([name, times]) => `${name} ${times}`);
  return [
    `seed ${plan.seed}, ${Math.round(tookMs / 1_000)} s`,
    `${verdicts.length} pods: ${shapes.join(', ')}`,
    `  boosted at admission ${count(({ boosted }) => boosted === 'AtAdmission')}`,
    `  caught up            ${count(({ boosted }) => boosted === 'CaughtUp')}`,
    `  missed               ${count(({ boosted }) => boosted === 'Missed')}`,
    `  without a boost to get, or gone before it  ${count(({ boosted }) => boosted === 'Excused')}`,
    `  reverted             ${count(({ isReverted }) => isReverted)}`,
    `${total} faults: ${kinds.join(', ')}`,
    `longest time from the end of a boost to its revert: ${longestDelay(history)}`,
    `writes refused by their guards ${history.refused}, answers lost ${history.unanswered}, ` +
      `writes of a former leader ${history.byFormerLeader}`,
    ...(result.logFolder === undefined ? [] : [`the logs are in ${result.logFolder}`]),
  ].join('\n');
}

function longestDelay({ verdicts }: HistoryReport): string {
  const delays = verdicts
    .flatMap(({ pod, delayMs }) => (delayMs === undefined ? [] : [{ pod, delayMs }]))
    .sort((a, b) => b.delayMs - a.delayMs);
  const [longest] = delays;
  const median = delays[Math.floor(delays.length / 2)];
  if (longest === undefined || median === undefined) return 'none';
  return `${(longest.delayMs / 1_000).toFixed(1)} s (${longest.pod}), half of them within ${median.delayMs} ms`;
}

/** Each offending pod with its history. */
export function describeProblems({ history, problems }: ChaosResult): string {
  const pods = [...history.histories].slice(0, MOST_OFFENDERS);
  const more = history.histories.size - pods.length;
  return [
    ...problems,
    ...pods.flatMap(([pod, lines]) => [
      `${pod}:`,
      ...history.violations
        .filter((violation) => violation.pod === pod)
        .map(({ kind, message }) => `  ${kind}: ${message}`),
      ...lines.map((line) => `    ${line}`),
    ]),
    ...(more > 0 ? [`and ${more} more pods`] : []),
  ].join('\n');
}
