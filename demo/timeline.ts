/** The live timeline: turns what the watch shows of the pods into lines, and keeps their histories. */
import { BOOST_KEY, SKIPPED_KEY, parseRecord, readPod } from '../src/boost-engine';
import type { BoostRecord, CpuResources, PodFacts } from '../src/boost-engine';
import type { Clock, JsonObject } from '../src/kube';
import { explain } from './reasons';
import type { ReasonSource } from './reasons';
import type { Cell, Terminal, Tone } from './terminal';

export interface ContainerHistory {
  readonly pod: string;
  readonly container: string;
  /** CPU as text: before the boost, then each change. */
  readonly cpu: string[];
  raisedAt?: number;
  loweredAt?: number;
  /** Reason code of the end, or of having been left alone. */
  reason: string;
}

interface PodHistory {
  readonly containers: ReadonlyMap<string, ContainerHistory>;
  isRunning: boolean;
  isReady: boolean;
  hasRecord: boolean;
}

/** Time, pod, what happened, CPU; the reason has the rest of the line. */
const WIDTHS = [6, 12, 24, 33];

export class Timeline {
  readonly #terminal: Terminal;
  readonly #reasons: ReasonSource;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #begin: number;
  readonly #pods = new Map<string, PodHistory>();

  /** Now is the moment that is shown as 0.0 s. */
  constructor(terminal: Terminal, reasons: ReasonSource, clock: Pick<Clock, 'now'>) {
    this.#terminal = terminal;
    this.#reasons = reasons;
    this.#clock = clock;
    this.#begin = clock.now();
  }

  head(): void {
    const names = ['TIME', 'POD', 'WHAT HAPPENED', 'CPU request/limit', 'REASON'];
    this.#terminal.row(
      WIDTHS,
      names.map((text): Cell => ({ text, tone: 'title' })),
    );
  }

  /** Whether the pod has had a boost that is over, with its record taken off. */
  isBack(name: string): boolean {
    const pod = this.#pods.get(name);
    return pod !== undefined && !pod.hasRecord && histories(pod).some(({ cpu }) => cpu.length > 2);
  }

  isReady(name: string): boolean {
    return this.#pods.get(name)?.isReady ?? false;
  }

  containers(): readonly ContainerHistory[] {
    return [...this.#pods.values()].flatMap(histories);
  }

  forget(object: JsonObject): void {
    this.#pods.delete(readPod(object).name ?? '');
  }

  /** Takes the next version of a pod; versions of one pod come in their order. */
  async see(object: JsonObject): Promise<void> {
    const facts = readPod(object);
    const { name = '' } = facts;
    const known = this.#pods.get(name);
    if (known === undefined) {
      this.#pods.set(name, this.#created(name, facts));
      return;
    }
    this.#lifeOf(name, facts, known);
    await this.#changesOfCpu(name, facts, known);
    if (known.hasRecord && recordOf(facts) === undefined) {
      known.hasRecord = false;
      this.#say(name, 'confirmed by the kubelet', 'faint', '', 'the record is off the pod');
    }
  }

  #created(name: string, facts: PodFacts): PodHistory {
    const record = recordOf(facts);
    const containers = new Map<string, ContainerHistory>();
    for (const container of facts.containers) {
      const original = record?.containers.get(container.name)?.original;
      const history: ContainerHistory = {
        pod: name,
        container: container.name,
        cpu: [cpuText(original ?? container.cpu)],
        reason: '',
      };
      containers.set(container.name, history);
      const label = this.#label(name, facts, container.name);
      if (original === undefined) {
        history.reason = this.#whyLeftAlone(facts, name, container.name);
        this.#say(label, 'created as it is', 'plain', trail(history), explain(history.reason));
      } else {
        history.cpu.push(cpuText(container.cpu));
        history.raisedAt = this.#clock.now();
        const boost = facts.labels?.get(BOOST_KEY) ?? '';
        this.#say(label, 'created with more CPU', 'raised', trail(history), `boost "${boost}"`);
      }
    }
    const hasRecord = record !== undefined;
    return { containers, isRunning: false, isReady: false, hasRecord };
  }

  #lifeOf(name: string, facts: PodFacts, known: PodHistory): void {
    if (!known.isRunning && facts.phase === 'Running') {
      known.isRunning = true;
      this.#say(name, 'runs, still starting', 'plain', '', '');
    }
    const isReady = facts.conditions.get('Ready')?.status === 'True';
    if (!known.isReady && isReady) this.#say(name, 'Ready', 'good', '', '');
    known.isReady = isReady;
  }

  async #changesOfCpu(name: string, facts: PodFacts, known: PodHistory): Promise<void> {
    for (const container of facts.containers) {
      const history = known.containers.get(container.name);
      const now = cpuText(container.cpu);
      if (history === undefined || history.cpu.at(-1) === now) continue;
      history.cpu.push(now);
      history.loweredAt = this.#clock.now();
      history.reason = await this.#reasons.ofEnd(facts.namespace ?? '', name);
      const label = this.#label(name, facts, container.name);
      const what = now === history.cpu[0] ? 'CPU given back, in place' : 'CPU changed in place';
      this.#say(label, what, 'lowered', trail(history), explain(history.reason));
    }
  }

  #whyLeftAlone(facts: PodFacts, pod: string, container: string): string {
    const skipped = facts.annotations?.get(SKIPPED_KEY);
    const code = skipped ?? this.#reasons.ofSkip(facts.namespace ?? '', pod, container);
    return code ?? 'NoBoostMatches';
  }

  /** The container is named where there is more than one. */
  #label(pod: string, facts: PodFacts, container: string): string {
    return facts.containers.length > 1 ? `${pod}/${container}` : pod;
  }

  #say(label: string, what: string, tone: Tone, cpu: string, reason: string): void {
    const seconds = (this.#clock.now() - this.#begin) / 1_000;
    this.#terminal.row(WIDTHS, [
      { text: `${seconds.toFixed(1)}s`, tone: 'faint' },
      { text: label },
      { text: what, tone },
      { text: cpu, tone },
      { text: reason, tone: 'faint' },
    ]);
  }
}

/** `250m/1`; one value where request and limit are the same or only the request is there. */
export function cpuText({ request, limit }: CpuResources): string {
  if (request === undefined) return limit === undefined ? '-' : `-/${limit}`;
  return limit === undefined || limit === request ? request : `${request}/${limit}`;
}

function trail({ cpu }: ContainerHistory): string {
  return cpu.join(' -> ');
}

function histories(pod: PodHistory): readonly ContainerHistory[] {
  return [...pod.containers.values()];
}

function recordOf({ annotations }: PodFacts): BoostRecord | undefined {
  const text = annotations?.get(BOOST_KEY);
  if (text === undefined) return undefined;
  const parsed = parseRecord(text);
  return parsed.kind === 'Record' ? parsed.record : undefined;
}
