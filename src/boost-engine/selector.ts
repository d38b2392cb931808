/** Label selectors, with the semantics of k8s.io/apimachinery/pkg/labels. */
import type { IssueList } from './issue';
import { fieldsOf, isObject, itemsOf, textOf, textsOf } from './json';

export type Requirement =
  | {
      readonly operator: 'In' | 'NotIn';
      readonly key: string;
      readonly values: ReadonlySet<string>;
    }
  | { readonly operator: 'Exists' | 'DoesNotExist'; readonly key: string };

/** All requirements must hold; none at all matches every pod. */
export type Selector = readonly Requirement[];

type Labels = ReadonlyMap<string, string>;

export function matchesSelector(selector: Selector, labels: Labels | undefined): boolean {
  return selector.every((requirement) => holds(requirement, labels?.get(requirement.key)));
}

/** `NotIn` and `DoesNotExist` hold for a pod that does not carry the key, as in Kubernetes. */
function holds(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && requirement.values.has(value);
    case 'NotIn':
      return value === undefined || !requirement.values.has(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

/** Two selectors with the same canonical text select the same pods. */
export function canonicalSelector(selector: Selector): string {
  const lines = selector.map((requirement) =>
    'values' in requirement
      ? `${requirement.key} ${requirement.operator} ${[...requirement.values].sort().join(',')}`
      : `${requirement.key} ${requirement.operator}`,
  );
  return [...new Set(lines)].sort().join('\n');
}

/**
 * Compiles a `metav1.LabelSelector`.
 *
 * A missing selector selects every pod of the namespace: today's schema refuses it, but objects
 * stored by google/kube-startup-cpu-boost without one mean just that.
 */
export function compileSelector(value: unknown, path: string, issues: IssueList): Selector {
  if (value === undefined || value === null) return [];
  if (!isObject(value)) {
    issues.add(path, 'must be a label selector: an object with matchLabels, matchExpressions');
    return [];
  }
  const fields = fieldsOf(value);
  return [
    ...compileMatchLabels(fields.get('matchLabels'), `${path}.matchLabels`, issues),
    ...compileExpressions(fields.get('matchExpressions'), `${path}.matchExpressions`, issues),
  ];
}

function compileMatchLabels(value: unknown, path: string, issues: IssueList): Requirement[] {
  if (value === undefined || value === null) return [];
  const labels = textsOf(value);
  if (labels?.size !== fieldsOf(value).size) {
    issues.add(path, 'must be an object whose values are strings');
    return [];
  }
  return [...labels].map(([key, text]) => ({ operator: 'In', key, values: new Set([text]) }));
}

/** Anything but a list would silently select more pods than was meant. */
function compileExpressions(value: unknown, path: string, issues: IssueList): Requirement[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    issues.add(path, 'must be a list of expressions with key, operator and values');
    return [];
  }
  return itemsOf(value).flatMap((expression, index) =>
    compileExpression(expression, `${path}[${index}]`, issues),
  );
}

function compileExpression(value: unknown, path: string, issues: IssueList): Requirement[] {
  const fields = fieldsOf(value);
  const key = textOf(fields.get('key'));
  const operator = fields.get('operator');
  const items = itemsOf(fields.get('values'));
  const values = items.filter((item) => typeof item === 'string');
  if (key === undefined || key === '') {
    issues.add(`${path}.key`, 'must be a label key');
    return [];
  }
  if (values.length < items.length) {
    issues.add(`${path}.values`, 'must be strings');
    return [];
  }
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) issues.add(`${path}.values`, `needs a value for ${operator}`);
      return [{ operator, key, values: new Set(values) }];
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) issues.add(`${path}.values`, `must be empty for ${operator}`);
      return [{ operator, key }];
    default:
      issues.add(`${path}.operator`, 'must be In, NotIn, Exists or DoesNotExist');
      return [];
  }
}
