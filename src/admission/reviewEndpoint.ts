/** One webhook as a function from the text of a review to the answer; never throws. */
import { decodeReview, encodeReview } from './admissionReview';
import type { AdmissionAnswer, AdmissionRequest, EncodedReview } from './admissionReview';
import { nestsDeeperThan } from './jsonNesting';
import type { Ruling, RulingNote } from './ruling';

export interface ReviewEndpoint {
  readonly path: string;
  readonly judge: (request: AdmissionRequest) => Ruling;
  /** The answer where a review cannot be read, or cannot be judged. */
  readonly withoutJudgement: (status: { code: number; message: string }) => AdmissionAnswer;
}

export type Reply =
  | { readonly kind: 'Review'; readonly body: EncodedReview; readonly note: RulingNote }
  /** Nothing that an answer could be about: plain HTTP. */
  | {
      readonly kind: 'Refused';
      readonly status: number;
      readonly why: string;
      readonly note: RulingNote;
    };

/** A pod nests about 15 deep, and twice that in its managedFields. */
const MAX_NESTING = 100;

export function answerReview(text: string, endpoint: ReviewEndpoint): Reply {
  const parsed = parseJson(text);
  if (parsed.kind === 'Broken') return refuse(400, 'MalformedReview', parsed.why);
  const decoded = decodeReview(parsed.value);
  if (decoded.kind === 'Review') return judge(decoded.request, endpoint);
  const { uid, why } = decoded;
  if (uid === undefined) return refuse(400, 'MalformedReview', why);
  const message = `the review cannot be read: ${why}`;
  return {
    kind: 'Review',
    body: encodeReview(uid, endpoint.withoutJudgement({ code: 400, message })),
    note: { level: 'warn', result: 'MalformedReview', message, fields: { uid } },
  };
}

/** @param result a code from a closed set, for the metrics */
export function refuse(status: number, result: string, why: string): Reply {
  return {
    kind: 'Refused',
    status,
    why,
    note: { level: 'warn', result, message: `review refused: ${why}`, fields: { status } },
  };
}

/** The error boundary: a mistake of ours must neither keep a pod from running nor end the process. */
function judge(request: AdmissionRequest, endpoint: ReviewEndpoint): Reply {
  try {
    const { answer, note } = endpoint.judge(request);
    return { kind: 'Review', body: encodeReview(request.uid, answer), note };
  } catch (error) {
    const { uid, namespace } = request;
    const message = 'the review could not be judged, which is a mistake of startup-cpu-boost';
    return {
      kind: 'Review',
      body: encodeReview(uid, endpoint.withoutJudgement({ code: 500, message })),
      note: { level: 'error', result: 'Error', message, fields: { uid, namespace, error } },
    };
  }
}

type ParsedText =
  | { readonly kind: 'Parsed'; readonly value: unknown }
  | { readonly kind: 'Broken'; readonly why: string };

function parseJson(text: string): ParsedText {
  if (text === '') return { kind: 'Broken', why: 'the body is empty' };
  if (nestsDeeperThan(MAX_NESTING, text)) {
    return { kind: 'Broken', why: `the body nests deeper than ${MAX_NESTING}` };
  }
  try {
    return { kind: 'Parsed', value: JSON.parse(text) };
  } catch {
    // The parser's own message would put parts of the body into the log.
    return { kind: 'Broken', why: 'the body is not JSON' };
  }
}
