/** Reads request bodies within bounds: of one body, of all bodies together, and of time. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../kube';

export type ReadBody =
  | { readonly kind: 'Body'; readonly text: string }
  | {
      readonly kind: 'Refused';
      readonly status: 400 | 408 | 413 | 503;
      readonly code: 'BodyTooLarge' | 'BodyTooSlow' | 'BodyCutOff' | 'TooManyBodies';
      readonly why: string;
    };

export interface BodyBounds {
  /** Bytes of one body. */
  readonly bytes: number;
  /** Bytes of all bodies that are being read at one moment. */
  readonly bytesTogether: number;
  /** From the headers to the last byte. */
  readonly milliseconds: number;
}

export class BodyReader {
  readonly #bounds: BodyBounds;
  readonly #clock: Clock;
  #bytesHeld = 0;

  constructor(bounds: BodyBounds, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /** Never rejects. What is left of a refused body stays unread: the connection has to be closed. */
  read(request: IncomingMessage): Promise<ReadBody> {
    const { bytes, milliseconds } = this.#bounds;
    if (Number(request.headers['content-length'] ?? 0) > bytes) {
      return Promise.resolve(this.#tooLarge());
    }
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const settle = (result: ReadBody): void => {
        timer.cancel();
        request.off('data', take).off('end', finish).off('close', cutOff);
        request.pause();
        this.#bytesHeld -= length;
        resolve(result);
      };
      const take = (chunk: Buffer): void => {
        length += chunk.length;
        this.#bytesHeld += chunk.length;
        const refusal = this.#refusalAt(length);
        if (refusal === undefined) chunks.push(chunk);
        else settle(refusal);
      };
      const finish = (): void => {
        settle({ kind: 'Body', text: Buffer.concat(chunks).toString() });
      };
      const cutOff = (): void => {
        settle({ kind: 'Refused', status: 400, code: 'BodyCutOff', why: 'the body was cut off' });
      };
      const timer = this.#clock.setTimer(milliseconds, () => {
        const why = `the body was not complete within ${milliseconds / 1_000} s`;
        settle({ kind: 'Refused', status: 408, code: 'BodyTooSlow', why });
      });
      // Cut off means `error`, then `close`; without a listener the error would end the process.
      request.on('error', () => undefined);
      request.on('data', take).once('end', finish).once('close', cutOff);
    });
  }

  #refusalAt(length: number): ReadBody | undefined {
    if (length > this.#bounds.bytes) return this.#tooLarge();
    return this.#bytesHeld > this.#bounds.bytesTogether
      ? {
          kind: 'Refused',
          status: 503,
          code: 'TooManyBodies',
          why: `more than ${this.#bounds.bytesTogether} bytes of bodies are being read`,
        }
      : undefined;
  }

  #tooLarge(): ReadBody {
    const why = `the body has more than ${this.#bounds.bytes} bytes`;
    return { kind: 'Refused', status: 413, code: 'BodyTooLarge', why };
  }
}
