/** Why something was done: what the two processes wrote into their logs. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  CONTAINER_SKIPS,
  END_REASONS,
  POD_SKIPS,
  fieldsOf,
  itemsOf,
  textOf,
} from '../src/boost-engine';
import type { BoostProcess } from '../test/support/processes';

/** A line is written when the API server has answered, so the watch may be ahead of it. */
const WRITTEN_WITHIN_MS = 2_000;

export type ReasonSource = Pick<Reasons, 'ofEnd' | 'ofSkip'>;

export class Reasons {
  readonly #admission: BoostProcess;
  readonly #controller: BoostProcess;

  constructor(admission: BoostProcess, controller: BoostProcess) {
    this.#admission = admission;
    this.#controller = controller;
  }

  /** The code for the end of the pod's boost; `unknown` if the controller does not say. */
  async ofEnd(namespace: string, pod: string): Promise<string> {
    const end = Date.now() + WRITTEN_WITHIN_MS;
    while (Date.now() < end) {
      for (const line of this.#controller.logs()) {
        const fields = fieldsOf(line);
        const reason = textOf(fields.get('reason'));
        if (fields.get('pod') === `${namespace}/${pod}` && reason !== undefined) return reason;
      }
      await delay(20);
    }
    return 'unknown';
  }

  /** The code for a container that was left alone in a pod that was boosted. */
  ofSkip(namespace: string, pod: string, container: string): string | undefined {
    for (const line of this.#admission.logs()) {
      const fields = fieldsOf(line);
      if (fields.get('namespace') !== namespace || fields.get('pod') !== pod) continue;
      const skipped = itemsOf(fields.get('skipped')).map(fieldsOf);
      const found = skipped.find((each) => each.get('name') === container);
      if (found !== undefined) return textOf(found.get('code'));
    }
    return undefined;
  }
}

const SENTENCES = new Map<string, string>(
  Object.entries({ ...POD_SKIPS, ...CONTAINER_SKIPS, ...END_REASONS }),
);

/** The code with the sentence that explains it. */
export function explain(code: string): string {
  const sentence = SENTENCES.get(code);
  return sentence === undefined ? code : `${code}: ${sentence}`;
}
