/** The validating webhook: refuses a StartupCPUBoost that could not work, and says what to change. */
import { readMetadata } from '../boost-engine';
import type { CompiledBoost, Issue } from '../boost-engine';
import { reviewBoost } from '../resources';
import type { BoostReview } from '../resources';
import { isAbout } from './admissionReview';
import type { AdmissionRequest, ReviewedResource } from './admissionReview';
import type { Ruling } from './ruling';

const BOOSTS: ReviewedResource = { group: 'autoscaling.x-k8s.io', plural: 'startupcpuboosts' };

/** The API server cuts the warnings of one answer at 4096 bytes, and clients show 256 of each. */
const MAX_OLD_ISSUES = 5;

/**
 * Judges a boost that is created or updated; anything else is allowed.
 *
 * What was wrong with the stored boost already is a warning only: a boost that an older version let
 * in must still take a label, or lose its finalizer.
 *
 * @param others the boosts of the namespace, an older state of this one perhaps among them
 */
export function validateBoost(request: AdmissionRequest, others: Iterable<CompiledBoost>): Ruling {
  const { operation, object, oldObject } = request;
  const isChange = operation === 'CREATE' || operation === 'UPDATE';
  if (!isChange || !isAbout(request, BOOSTS)) return otherReview(request);
  const review = reviewBoost({ boost: object, others: [...others] });
  const old = operation === 'UPDATE' ? reviewBoost({ boost: oldObject, others: [] }).errors : [];
  const known = new Set(old.map(textOfIssue));
  const refusing = review.errors.filter((issue) => !known.has(textOfIssue(issue)));
  const ruling =
    refusing.length > 0
      ? refusal(review, refusing)
      : acceptance(review, review.errors.slice(0, MAX_OLD_ISSUES));
  const { namespace } = request;
  const { name } = readMetadata(object);
  const { note } = ruling;
  return {
    ...ruling,
    note: {
      ...note,
      ...(request.isDryRun
        ? { level: 'debug', result: 'DryRun', message: `dry run: ${note.message}` }
        : {}),
      fields: { namespace, boost: name, operation, ...note.fields },
    },
  };
}

function refusal({ warnings }: BoostReview, issues: readonly Issue[]): Ruling {
  const message = issues.map(textOfIssue).join('; ');
  return {
    answer: { allowed: false, status: { code: 422, reason: 'Invalid', message }, warnings },
    note: { level: 'info', result: 'Refused', message: 'boost refused', fields: { issues } },
  };
}

function acceptance({ warnings }: BoostReview, oldIssues: readonly Issue[]): Ruling {
  const ignored = oldIssues.map((issue) => `the boost is ignored: ${textOfIssue(issue)}`);
  return {
    answer: { allowed: true, warnings: [...ignored, ...warnings] },
    note: { level: 'info', result: 'Accepted', message: 'boost accepted', fields: { warnings } },
  };
}

function otherReview({ operation, resource, subresource }: AdmissionRequest): Ruling {
  const message = 'allowed: only new and changed boosts are reviewed';
  return {
    answer: { allowed: true, status: { code: 200, message } },
    note: {
      level: 'debug',
      result: 'NoBoostChange',
      message,
      fields: { operation, ...resource, subresource },
    },
  };
}

function textOfIssue({ path, message }: Issue): string {
  return `${path} ${message}`;
}
