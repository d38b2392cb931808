/** AdmissionReview v1: what the API server asks, and the answer in the form that it takes. */
import { fieldsOf, isObject, textOf } from '../boost-engine';
import type { JsonPatch } from '../boost-engine';

export interface ReviewedResource {
  /** '' is the core group. */
  readonly group: string;
  /** The plural name, such as `pods`. */
  readonly plural: string;
}

export interface AdmissionRequest {
  /** Of the request, not of the object; the answer repeats it. */
  readonly uid: string;
  readonly operation: string;
  readonly resource: ReviewedResource;
  /** '' where the object itself is meant. */
  readonly subresource: string;
  readonly namespace: string;
  readonly isDryRun: boolean;
  /** Plain JSON that nobody has checked; null or undefined where the operation has none. */
  readonly object: unknown;
  readonly oldObject: unknown;
}

export type DecodedReview =
  | { readonly kind: 'Review'; readonly request: AdmissionRequest }
  | { readonly kind: 'Malformed'; readonly uid?: string; readonly why: string };

export interface AdmissionAnswer {
  readonly allowed: boolean;
  readonly patch?: JsonPatch;
  /** To the user where the answer is no; otherwise for whoever calls the server by hand. */
  readonly status?: AnswerStatus;
  /** Shown by kubectl; together at most 4096 bytes. */
  readonly warnings?: readonly string[];
  /** The API server puts the webhook's name before the keys. */
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/** A part of metav1.Status. */
export interface AnswerStatus {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
}

/** An encoded answer, ready to be written as JSON. */
export type EncodedReview = Readonly<Record<string, unknown>>;

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

/** The API server writes a UUID; a longer text would only fill the logs. */
const MAX_UID_LENGTH = 128;

/** Decodes parsed JSON; never throws. */
export function decodeReview(body: unknown): DecodedReview {
  if (!isObject(body)) return malformed(undefined, 'the body is not a JSON object');
  const review = fieldsOf(body);
  const request = fieldsOf(review.get('request'));
  const uid = textOf(request.get('uid')) ?? '';
  if (uid === '' || uid.length > MAX_UID_LENGTH) {
    return malformed(
      undefined,
      `request.uid must be a text of 1 to ${MAX_UID_LENGTH} characters: nothing can be answered without it`,
    );
  }
  if (review.get('apiVersion') !== API_VERSION || review.get('kind') !== KIND) {
    return malformed(uid, `apiVersion and kind must be ${API_VERSION} and ${KIND}`);
  }
  return decodeRequest(uid, request);
}

function decodeRequest(uid: string, request: ReadonlyMap<string, unknown>): DecodedReview {
  const operation = textOf(request.get('operation'));
  const resource = fieldsOf(request.get('resource'));
  const group = textOf(resource.get('group'));
  const plural = textOf(resource.get('resource'));
  if (operation === undefined || group === undefined || plural === undefined) {
    return malformed(uid, 'request must have an operation, and a resource with group and resource');
  }
  return {
    kind: 'Review',
    request: {
      uid,
      operation,
      resource: { group, plural },
      subresource: textOf(request.get('subResource')) ?? '',
      namespace: textOf(request.get('namespace')) ?? '',
      isDryRun: request.get('dryRun') === true,
      object: request.get('object'),
      oldObject: request.get('oldObject'),
    },
  };
}

export function encodeReview(uid: string, answer: AdmissionAnswer): EncodedReview {
  const { allowed, patch = [], status, warnings = [], auditAnnotations = {} } = answer;
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    response: {
      uid,
      allowed,
      ...(patch.length === 0 ? {} : { patchType: 'JSONPatch', patch: base64Of(patch) }),
      ...(status === undefined ? {} : { status }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(Object.keys(auditAnnotations).length === 0 ? {} : { auditAnnotations }),
    },
  };
}

/** Whether the request is about such an object itself, not about a subresource of it. */
export function isAbout(request: AdmissionRequest, { group, plural }: ReviewedResource): boolean {
  const { resource, subresource } = request;
  return resource.group === group && resource.plural === plural && subresource === '';
}

function malformed(uid: string | undefined, why: string): DecodedReview {
  return { kind: 'Malformed', why, ...(uid === undefined ? {} : { uid }) };
}

function base64Of(patch: JsonPatch): string {
  return Buffer.from(JSON.stringify(patch)).toString('base64');
}
