/** The mutating webhook: boosts a pod that is being created, or says why it is left as it is. */
import {
  decideBoost,
  fieldsOf,
  itemsOf,
  MAX_CONTAINERS,
  RAISE_CAUSES,
  readMetadata,
  textOf,
} from '../boost-engine';
import type { BoostDecision } from '../boost-engine';
import type { LogFields } from '../observability';
import { isAbout } from './admissionReview';
import type { AdmissionRequest, ReviewedResource } from './admissionReview';
import type { NamespaceView } from './namespaceWatcher';
import type { Ruling, RulingNote } from './ruling';

const PODS: ReviewedResource = { group: '', plural: 'pods' };

/** A pod can have more containers than a line of the log should name. */
const MAX_LOGGED_CONTAINERS = 20;

/**
 * Judges the creation of a pod. The pod is always allowed, and a review of anything else changes
 * nothing.
 *
 * The boosts of a dry run are answered like any other, but written down as what they are.
 *
 * @param namespace the namespace of the request
 * @param now epoch milliseconds
 */
export function mutatePod(
  request: AdmissionRequest,
  namespace: NamespaceView,
  now: number,
): Ruling {
  if (request.operation !== 'CREATE' || !isAbout(request, PODS)) return otherReview(request);
  const containers = countContainers(request.object);
  if (containers > MAX_CONTAINERS) return tooManyContainers(containers, identify(request));
  const decision = decideBoost({
    pod: request.object,
    namespace: request.namespace,
    ...namespace,
    now,
  });
  const ruling = rulingOf(decision, identify(request));
  return request.isDryRun ? { ...ruling, note: dryRunNote(ruling.note) } : ruling;
}

function rulingOf(decision: BoostDecision, pod: LogFields): Ruling {
  switch (decision.kind) {
    case 'Boost': {
      const { boost, containers, skipped, patch } = decision;
      return {
        answer: { allowed: true, patch, auditAnnotations: { boost: boost.name } },
        note: {
          level: 'info',
          result: 'Boost',
          message: 'boosted',
          fields: {
            ...pod,
            boost: boost.name,
            containers: containers
              .slice(0, MAX_LOGGED_CONTAINERS)
              .map(({ name, from, to }) => ({ name, from, to })),
            skipped: skipped.slice(0, MAX_LOGGED_CONTAINERS),
          },
        },
      };
    }
    case 'Postpone': {
      const { boost, reason, patch } = decision;
      return {
        answer: {
          allowed: true,
          patch,
          auditAnnotations: { boost: boost.name, postponed: reason },
        },
        note: {
          level: 'info',
          result: reason,
          message: `to be boosted once it has a node: ${RAISE_CAUSES[reason]}`,
          fields: { ...pod, boost: boost.name, reason },
        },
      };
    }
    case 'AlreadyBoosted':
      return {
        answer: { allowed: true, auditAnnotations: { boost: decision.boost.name } },
        note: {
          level: 'debug',
          result: 'AlreadyBoosted',
          message: 'the pod has this boost already',
          fields: { ...pod, boost: decision.boost.name },
        },
      };
    case 'Skip':
      return skipRuling(decision, pod);
  }
}

function skipRuling(
  { boost, code, message, skipped, patch }: BoostDecision & { readonly kind: 'Skip' },
  pod: LogFields,
): Ruling {
  if (boost === undefined) {
    return {
      answer: { allowed: true, patch },
      note: { level: 'debug', result: code, message: `not boosted: ${message}`, fields: pod },
    };
  }
  return {
    answer: { allowed: true, patch, auditAnnotations: { boost: boost.name, skipped: code } },
    note: {
      level: 'info',
      result: code,
      message: `not boosted: ${message}`,
      fields: {
        ...pod,
        boost: boost.name,
        code,
        skipped: skipped.slice(0, MAX_LOGGED_CONTAINERS),
      },
    },
  };
}

/** Its metric counts no boost, and its line is not among those of pods that exist. */
function dryRunNote({ message, fields }: RulingNote): RulingNote {
  return { level: 'debug', result: 'DryRun', message: `dry run: ${message}`, fields };
}

/** A webhook configuration that is wider than ours sends what is none of our business. */
function otherReview({ operation, resource, subresource }: AdmissionRequest): Ruling {
  const message = 'left as it is: only the creation of pods is changed';
  return {
    answer: { allowed: true, status: { code: 200, message } },
    note: {
      level: 'debug',
      result: 'NoPodCreation',
      message,
      fields: { operation, ...resource, subresource },
    },
  };
}

function countContainers(pod: unknown): number {
  const spec = fieldsOf(fieldsOf(pod).get('spec'));
  return itemsOf(spec.get('containers')).length + itemsOf(spec.get('initContainers')).length;
}

/** Whether a boost selects the pod is not known here, so nothing is written on it. */
function tooManyContainers(containers: number, pod: LogFields): Ruling {
  const result = 'TooManyContainers';
  return {
    answer: { allowed: true, auditAnnotations: { skipped: result } },
    note: {
      level: 'info',
      result,
      message: `not boosted: the pod has more than ${MAX_CONTAINERS} containers`,
      fields: { ...pod, containers },
    },
  };
}

/** Most pods get their name from the API server, after admission. */
function identify({ namespace, object }: AdmissionRequest): LogFields {
  const { name } = readMetadata(object);
  const prefix = textOf(fieldsOf(fieldsOf(object).get('metadata')).get('generateName'));
  return { namespace, pod: name ?? (prefix === undefined ? undefined : `${prefix}*`) };
}
