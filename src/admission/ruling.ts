/** What is answered to a review, together with what is written about it. */
import type { LogFields } from '../observability';
import type { AdmissionAnswer } from './admissionReview';

export interface Ruling {
  readonly answer: AdmissionAnswer;
  readonly note: RulingNote;
}

/** One line of the log, and one count in the metrics. */
export interface RulingNote {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** A code from a closed set: it becomes the value of a metric's label. */
  readonly result: string;
  readonly message: string;
  readonly fields: LogFields;
}
