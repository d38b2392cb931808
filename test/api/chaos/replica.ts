/** One replica of a role: a process that is ended and started again, and everything it has logged. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '../../../src/kube';
import { startProcess } from '../../support/processes';
import type { BoostProcess, Exit, ProcessOptions, Role, StopSignal } from '../../support/processes';
import type { TcpProxy } from '../../support/tcpProxy';
import type { AdmissionService } from './admissionService';

export interface ReplicaOptions {
  readonly role: Role;
  readonly name: string;
  /** Its way to the API server. */
  readonly proxy: TcpProxy;
  /** What admission is part of. */
  readonly service: AdmissionService;
  readonly options: ProcessOptions;
}

/** Longer than the drain time and whatever is finished after it. */
const ENDS_WITHIN_MS = 60_000;

export class Replica {
  readonly role: Role;
  readonly name: string;
  /** What went wrong that nobody asked for. */
  readonly problems: string[] = [];
  readonly #options: ReplicaOptions;
  readonly #processes: BoostProcess[] = [];
  #current: BoostProcess | undefined;
  /** Whether it runs, is Ready, and nothing is being done to it. */
  #isUp = false;

  constructor(options: ReplicaOptions) {
    this.role = options.role;
    this.name = options.name;
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when it is Ready. */
  async start(): Promise<void> {
    const { role, service, options } = this.#options;
    const child = await startProcess(role, options);
    this.#processes.push(child);
    this.#current = child;
    if (role === 'admission') service.add(child);
    void child.exited.then((exit) => {
      if (this.#current === child) this.#report(`ended by itself: ${exitText(exit)}`);
    });
    this.#isUp = true;
  }

  /** Ends it by the signal, and starts another one a while later. */
  async replace(signal: StopSignal, downMs: number): Promise<void> {
    await this.#stop(signal);
    await delay(downMs);
    await this.start();
  }

  async pause(forMs: number): Promise<void> {
    const child = this.#current;
    this.#isUp = false;
    child?.pause();
    await delay(forMs);
    child?.resume();
    this.#isUp = true;
  }

  stall(): void {
    this.#options.proxy.stall();
  }

  /** Whether it says that it is the one that acts. */
  async leads(): Promise<boolean> {
    if (this.#current === undefined) return false;
    try {
      const signal = AbortSignal.timeout(2_000);
      const response = await fetch(this.#current.metricsUrl, { signal });
      return (await response.text()).includes('\nstartup_cpu_boost_leader 1');
    } catch {
      return false;
    }
  }

  /** In order and for good. */
  async end(): Promise<void> {
    await this.#stop('SIGTERM');
  }

  /** Whatever state it is in. */
  async destroy(): Promise<void> {
    const child = this.#current;
    this.#current = undefined;
    await child?.stop('SIGKILL');
    await this.#options.proxy.stop();
  }

  logs(): readonly JsonObject[] {
    return this.#processes.flatMap((each) => each.logs());
  }

  output(): string {
    return this.#processes.map((each) => each.output()).join('\n');
  }

  async #stop(signal: StopSignal): Promise<void> {
    const child = this.#current;
    if (child === undefined) return;
    this.#isUp = false;
    this.#current = undefined;
    const late = setTimeout(() => {
      this.#report(`does not end after ${signal}`);
      void child.stop('SIGKILL');
    }, ENDS_WITHIN_MS);
    const exit = await child.stop(signal);
    clearTimeout(late);
    if (this.role === 'admission') this.#options.service.remove(child);
    const isExpected = signal === 'SIGTERM' ? exit.code === 0 : exit.signal === signal;
    if (!isExpected) this.#report(`after ${signal}: ${exitText(exit)}`);
  }

  #report(problem: string): void {
    this.problems.push(`${this.name} ${problem}`);
  }
}

function exitText({ code, signal }: Exit): string {
  return code === null ? String(signal) : `exit code ${code}`;
}
