/** The conditions of a boost: whether it boosts, could be taken back, and is alone. */
import type { CompiledBoost } from './boost';
import { fieldsOf, integerOf, itemsOf, textOf } from './json';
import { REVERTIBLE_REASONS } from './reasons';
import type { RevertibleReason } from './reasons';

/** A metav1.Condition. */
export interface StatusCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
}

/** What a boost depends on besides itself. What is left out is not known: its condition stays. */
export interface BoostSurroundings {
  readonly revertible?: RevertibleReason;
  /** Names of other webhook configurations that boost pods, too. */
  readonly conflictingWebhooks?: readonly string[];
  /** `Stopped`: the webhook does not select any pod, by the mark of revert-all. */
  readonly webhook?: 'Serving' | 'Stopped';
}

/** Longest condition message that metav1.Condition allows. */
const MAX_MESSAGE_LENGTH = 32_768;

/** The schema of the status allows no more. */
const MAX_CONDITIONS = 16;

/** Configurations that a message names; there is one at most, unless somebody plays. */
const MAX_NAMED_WEBHOOKS = 10;

type State = Pick<StatusCondition, 'type' | 'reason' | 'message'> & {
  readonly status: 'True' | 'False';
};

/**
 * The conditions to be stored. Those that others keep stay, and so do ours about which nothing is
 * known now; a condition keeps its time until its status changes.
 */
export function boostConditions(
  boost: CompiledBoost,
  surroundings: BoostSurroundings,
  previous: unknown,
  now: number,
): readonly StatusCondition[] {
  const stored = itemsOf(fieldsOf(previous).get('conditions')).flatMap(readCondition);
  const known = [
    activeState(boost, surroundings),
    ...revertibleState(surroundings),
    ...conflictState(surroundings),
  ].map((state): StatusCondition => {
    const before = stored.find(({ type }) => type === state.type);
    return {
      ...state,
      ...(boost.generation === undefined ? {} : { observedGeneration: boost.generation }),
      // metav1.Time has whole seconds.
      lastTransitionTime:
        before?.status === state.status
          ? before.lastTransitionTime
          : `${new Date(now).toISOString().slice(0, 19)}Z`,
    };
  });
  const types = new Set(known.map(({ type }) => type));
  // The API would refuse one without a reason, and with it the whole status.
  const kept = stored.filter(({ type, reason }) => !types.has(type) && reason !== '');
  return [...known, ...kept].slice(0, MAX_CONDITIONS);
}

/**
 * Whether the stored boost may be given, as far as its controller has found out whether it could be
 * taken back. A boost that no controller has looked at yet may.
 */
export function isRevertible(boost: unknown): boolean {
  const conditions = itemsOf(fieldsOf(fieldsOf(boost).get('status')).get('conditions'));
  return !conditions.some((condition) => {
    const fields = fieldsOf(condition);
    return fields.get('type') === 'Revertible' && fields.get('status') === 'False';
  });
}

function activeState(boost: CompiledBoost, { webhook }: BoostSurroundings): State {
  if (boost.kind === 'Invalid') {
    const issues = boost.issues.map(({ path, message }) => `${path} ${message}`);
    const message = `Boosts nothing: ${issues.join('; ')}`.slice(0, MAX_MESSAGE_LENGTH);
    return { type: 'Active', status: 'False', reason: 'Invalid', message };
  }
  return webhook === 'Stopped'
    ? {
        type: 'Active',
        status: 'False',
        reason: 'Stopped',
        message: 'Boosts nothing: revert-all has stopped the webhook; revert-all --undo starts it',
      }
    : {
        type: 'Active',
        status: 'True',
        reason: 'Ready',
        message: 'Can boost new containers',
      };
}

function revertibleState({ revertible }: BoostSurroundings): State[] {
  if (revertible === undefined) return [];
  const status = revertible === 'CanRevert' ? 'True' : 'False';
  const message = REVERTIBLE_REASONS[revertible];
  return [{ type: 'Revertible', status, reason: revertible, message }];
}

function conflictState({ conflictingWebhooks }: BoostSurroundings): State[] {
  if (conflictingWebhooks === undefined) return [];
  const type = 'ConflictingWebhook';
  if (conflictingWebhooks.length === 0) {
    const message = 'No other webhook boosts pods';
    return [{ type, status: 'False', reason: 'NoConflict', message }];
  }
  const names = conflictingWebhooks.slice(0, MAX_NAMED_WEBHOOKS).join(', ');
  const message = `Pods may be boosted twice, the second time on top of the first: delete one of the two operators; the other one's MutatingWebhookConfiguration is ${names}`;
  return [{ type, status: 'True', reason: 'OtherConfiguration', message }];
}

/** None where a field is missing that is needed here. */
function readCondition(value: unknown): StatusCondition[] {
  const fields = fieldsOf(value);
  const type = textOf(fields.get('type'));
  const status = (['True', 'False', 'Unknown'] as const).find((s) => s === fields.get('status'));
  const lastTransitionTime = textOf(fields.get('lastTransitionTime'));
  if (type === undefined || status === undefined || lastTransitionTime === undefined) return [];
  const observedGeneration = integerOf(fields.get('observedGeneration'));
  return [
    {
      type,
      status,
      reason: textOf(fields.get('reason')) ?? '',
      message: textOf(fields.get('message')) ?? '',
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
      lastTransitionTime,
    },
  ];
}
