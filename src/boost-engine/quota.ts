/** Which CPU values the ResourceQuotas of a namespace count for a pod. */
import { fieldsOf, isObject, itemsOf, textOf } from './json';
import type { QosClass } from './qosClass';

/** The CPU values of a container that a boost must leave alone. */
export interface TrackedCpu {
  readonly requests: boolean;
  readonly limits: boolean;
}

/** The facts about a pod that scopes ask for. */
export interface QuotaSubject {
  readonly qosClass: QosClass;
  readonly priorityClassName: string;
  /** The pod has `activeDeadlineSeconds`. */
  readonly hasDeadline: boolean;
}

/**
 * Whether a quota counts the pod's CPU requests and its CPU limits.
 *
 * A boosted pod would use up what belongs to others, and the API server would refuse the pod itself
 * where the quota is used up. A scope that is not known counts as matching, which does no harm.
 */
export function trackedCpu(quotas: readonly unknown[], subject: QuotaSubject): TrackedCpu {
  let requests = false;
  let limits = false;
  for (const quota of quotas) {
    const spec = fieldsOf(fieldsOf(quota).get('spec'));
    const hard = fieldsOf(spec.get('hard'));
    if (!matchesScopes(spec.get('scopes'), spec.get('scopeSelector'), subject)) continue;
    requests ||= hard.has('cpu') || hard.has('requests.cpu');
    limits ||= hard.has('limits.cpu');
  }
  return { requests, limits };
}

/** All scopes must match: pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc. */
function matchesScopes(scopes: unknown, scopeSelector: unknown, subject: QuotaSubject): boolean {
  const expressions = itemsOf(fieldsOf(scopeSelector).get('matchExpressions')).filter(isObject);
  return (
    itemsOf(scopes).every((scope) => matchesScope(textOf(scope), subject)) &&
    expressions.every((expression) => matchesExpression(expression, subject))
  );
}

function matchesScope(scope: string | undefined, subject: QuotaSubject): boolean {
  const known = new Map([
    ['Terminating', subject.hasDeadline],
    ['NotTerminating', !subject.hasDeadline],
    ['BestEffort', subject.qosClass === 'BestEffort'],
    ['NotBestEffort', subject.qosClass !== 'BestEffort'],
  ]);
  return known.get(scope ?? '') ?? true;
}

function matchesExpression(expression: object, subject: QuotaSubject): boolean {
  const fields = fieldsOf(expression);
  const scope = textOf(fields.get('scopeName'));
  if (scope !== 'PriorityClass') return matchesScope(scope, subject);
  const hasClass = subject.priorityClassName !== '';
  const isListed = hasClass && itemsOf(fields.get('values')).includes(subject.priorityClassName);
  switch (fields.get('operator')) {
    case 'In':
      return isListed;
    case 'NotIn':
      return !isListed;
    case 'Exists':
      return hasClass;
    case 'DoesNotExist':
      return !hasClass;
    default:
      return true;
  }
}
