/** What the validating webhook answers about a StartupCPUBoost: errors refuse it, warnings are shown to its author. */

import {
  canonicalSelector,
  comesBefore,
  compileBoost,
  fieldsOf,
  itemsOf,
  matchesContainer,
  textOf,
} from '../boost-engine';
import type { CompiledBoost, ContainerMatcher, Issue, ValidBoost } from '../boost-engine';
import { LIMITS } from './startupCpuBoost.schema';

export interface BoostReview {
  readonly errors: readonly Issue[];
  /** Sentences for the author, each below the 256 characters that clients show of a warning, except for long names. */
  readonly warnings: readonly string[];
}

const POLICIES_PATH = 'spec.resourcePolicy.containerPolicies';

/** The API server cuts all warnings of one answer together at 4096 bytes. */
const MAX_OVERLAP_WARNINGS = 5;

/**
 * Reviews a boost that is about to be stored.
 *
 * @param boost the object as it would be stored; anything else gives errors, never an exception
 * @param others the boosts that exist, of any namespace; an older state of the same boost may be among them
 */
export function reviewBoost({
  boost,
  others,
}: {
  readonly boost: unknown;
  readonly others: readonly CompiledBoost[];
}): BoostReview {
  const compiled = compileBoost(boost);
  const deprecations = deprecatedNameWarnings(boost);
  switch (compiled.kind) {
    case 'Invalid':
      return { errors: compiled.issues, warnings: deprecations };
    case 'Valid':
      return {
        errors: [],
        warnings: [
          ...deprecations,
          ...impossibleNameWarnings(compiled),
          ...shadowWarnings(compiled),
          ...unknownConditionWarnings(compiled),
          ...emptySelectorWarnings(compiled),
          ...overlapWarnings(compiled, others),
        ],
      };
  }
}

function deprecatedNameWarnings(boost: unknown): string[] {
  const resourcePolicy = fieldsOf(fieldsOf(fieldsOf(boost).get('spec')).get('resourcePolicy'));
  const policies = itemsOf(resourcePolicy.get('containerPolicies'));
  return policies.slice(0, LIMITS.containerPolicies).flatMap((policy, index) => {
    const name = textOf(fieldsOf(policy).get('containerName')) ?? '';
    return name === ''
      ? []
      : [
          `${POLICIES_PATH}[${index}].containerName is deprecated; write matchContainers: {type: ExactName, value: ${JSON.stringify(name)}}`,
        ];
  });
}

/** A DNS label: lower case letters, digits and dashes, which neither begin nor end it. */
const CONTAINER_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

function impossibleNameWarnings(boost: ValidBoost): string[] {
  return checkedPolicies(boost).flatMap(({ matcher }, index) =>
    matcher.kind === 'ExactName' && !CONTAINER_NAME.test(matcher.name)
      ? [
          `${POLICIES_PATH}[${index}] never applies: no container can be named ${JSON.stringify(matcher.name)}; for a pattern write matchContainers with type RegexName`,
        ]
      : [],
  );
}

function shadowWarnings(boost: ValidBoost): string[] {
  const policies = checkedPolicies(boost);
  return policies.flatMap(({ matcher }, index) => {
    const earlier = policies.slice(0, index).findIndex((other) => shadows(other.matcher, matcher));
    return earlier === -1
      ? []
      : [
          `${POLICIES_PATH}[${index}] never applies: containerPolicies[${earlier}] matches the same containers and comes first`,
        ];
  });
}

/** Patterns that are found in every name. */
const CATCH_ALL = new Set([
  '.*',
  '^.*',
  '.*$',
  '^.*$',
  '.+',
  '^.+',
  '.+$',
  '^.+$',
  '.',
  '^.',
  '.$',
  '^',
  '$',
]);

/** Whether surely every container that `later` matches is matched by `earlier`. */
function shadows(earlier: ContainerMatcher, later: ContainerMatcher): boolean {
  switch (later.kind) {
    case 'ExactName':
      return matchesContainer(earlier, later.name);
    case 'RegexName':
      return (
        earlier.kind === 'RegexName' &&
        (CATCH_ALL.has(earlier.pattern) || earlier.pattern === later.pattern)
      );
  }
}

/** Those that Kubernetes sets on pods by itself. */
const POD_CONDITIONS = new Set([
  'PodScheduled',
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
  'DisruptionTarget',
  'PodResizePending',
  'PodResizeInProgress',
]);

/** A condition of somebody's own has a domain in its name; without one it is most likely misspelt. */
function unknownConditionWarnings({ duration }: ValidBoost): string[] {
  const type = duration.podCondition?.type;
  if (type === undefined || type.includes('/') || POD_CONDITIONS.has(type)) return [];
  const end = duration.fixed === undefined ? 'MAXIMUM_BOOST_SECONDS' : 'fixedDuration';
  return [
    `spec.durationPolicy.podCondition.type: Kubernetes sets no condition ${JSON.stringify(type)} by itself; unless somebody else does, the boost ends by ${end} only`,
  ];
}

/** The schema's bound, kept for callers that the schema does not stand before. */
function checkedPolicies(boost: ValidBoost): ValidBoost['policies'] {
  return boost.policies.slice(0, LIMITS.containerPolicies);
}

/** Also what is left of a selector whose fields are unknown and so were pruned, such as {app: web} without matchLabels. */
function emptySelectorWarnings(boost: ValidBoost): string[] {
  return boost.selector.length > 0
    ? []
    : [
        `selector is empty: the boost is for all pods of namespace ${boost.namespace}; to choose pods write selector.matchLabels`,
      ];
}

function overlapWarnings(boost: ValidBoost, others: readonly CompiledBoost[]): string[] {
  const overlaps = others.flatMap((other) =>
    other.kind === 'Valid' && other.namespace === boost.namespace && other.name !== boost.name
      ? overlapOf(boost, other)
      : [],
  );
  const shown = overlaps.slice(0, MAX_OVERLAP_WARNINGS);
  const more = overlaps.length - shown.length;
  return more === 0 ? shown : [...shown, `${more} more boosts overlap with this one`];
}

function overlapOf(boost: ValidBoost, other: ValidBoost): string[] {
  const relation = relationOf(requirementsOf(boost), requirementsOf(other));
  if (relation === undefined) return [];
  const winner = comesBefore(other, boost) ? `boost ${other.name}` : 'this boost';
  return [
    `boost ${other.name} ${relation}; for pods of both only ${winner} counts: the oldest wins, then the first by name`,
  ];
}

/** How the pods of the other boost surely relate to the pods of this one; undefined where that depends on the pods. */
function relationOf(own: ReadonlySet<string>, others: ReadonlySet<string>): string | undefined {
  const isWider = isSubset(others, own);
  const isNarrower = isSubset(own, others);
  if (isWider && isNarrower) return 'selects the same pods';
  if (isWider) return 'selects all pods of this boost, and more';
  return isNarrower ? 'selects some of the pods of this boost' : undefined;
}

/** One line per requirement: the fewer requirements, the more pods. */
function requirementsOf(boost: ValidBoost): ReadonlySet<string> {
  return new Set(boost.selector.map((requirement) => canonicalSelector([requirement])));
}

function isSubset(part: ReadonlySet<string>, whole: ReadonlySet<string>): boolean {
  return [...part].every((line) => whole.has(line));
}
