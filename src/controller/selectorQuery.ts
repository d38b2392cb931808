/** A selector as the API server takes it in a query. */
import type { Requirement, Selector } from '../boost-engine';

/** Keys and values of labels, and nothing that would mean something else in a query. */
const SAFE = /^[A-Za-z0-9._/-]*$/;

/** Longer ones are judged here: proxies refuse long addresses. */
const MAX_LENGTH = 4_000;

/**
 * The selector as text; undefined where the API server could not take it, and all pods have to be
 * listed. It only saves transfers: every pod is judged by the selector itself.
 */
export function selectorQuery(selector: Selector): string | undefined {
  const texts = selector.map(requirementQuery);
  const known = texts.filter((text) => text !== undefined);
  const query = known.join(',');
  return known.length === texts.length && query.length <= MAX_LENGTH ? query : undefined;
}

function requirementQuery(requirement: Requirement): string | undefined {
  const { key, operator } = requirement;
  const values = 'values' in requirement ? [...requirement.values] : [];
  if (![key, ...values].every((text) => SAFE.test(text))) return undefined;
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(',')})`;
    case 'NotIn':
      return `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
  }
}
