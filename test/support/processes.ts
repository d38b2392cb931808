/** The real processes, from the real bundle, on free ports of 127.0.0.1. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '../../src/kube';
import { aCertificate, writeCertificateFiles } from './certificates';
import type { TestCertificate } from './certificates';

export type Role = 'admission' | 'controller';
export type StopSignal = 'SIGTERM' | 'SIGKILL';

export interface ProcessOptions {
  readonly kubeconfigPath: string;
  /** More settings, or others; see the README. */
  readonly env?: Readonly<Record<string, string>>;
  /** The bundle; dist/startup-cpu-boost.cjs by default. */
  readonly bundlePath?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Ports {
  readonly webhook: number;
  readonly health: number;
  readonly metrics: number;
}

// Another process may take a port between our look and the start.
const STARTS = 3;
const READY_WITHIN_MS = 20_000;

/** Starts the process and waits until it is ready; rejects with its last lines if it is not. */
export async function startProcess(role: Role, options: ProcessOptions): Promise<BoostProcess> {
  for (let start = 1; ; start++) {
    const child = await BoostProcess.spawn(role, options);
    try {
      await child.ready();
      return child;
    } catch (error) {
      await child.stop('SIGKILL');
      if (start === STARTS || !child.output().includes('EADDRINUSE')) throw error;
    }
  }
}

export class BoostProcess {
  readonly role: Role;
  readonly pid: number;
  /** Where admission answers the API server. */
  readonly webhookUrl: string;
  /** PEM of the CA of the certificate that was provided; with CERT_MODE=self-managed of no use. */
  readonly caBundle: string;
  readonly healthUrl: string;
  readonly metricsUrl: string;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  /** CERT_DIR, with the certificate that was provided. */
  readonly certificateFolder: string;
  readonly #lines: string[] = [];

  private constructor(
    role: Role,
    child: ChildProcess,
    ports: Ports,
    provided: { readonly folder: string; readonly certificate: TestCertificate },
  ) {
    if (child.pid === undefined) throw new Error(`${role} did not start`);
    this.role = role;
    this.pid = child.pid;
    this.webhookUrl = `https://127.0.0.1:${ports.webhook}`;
    this.healthUrl = `http://127.0.0.1:${ports.health}`;
    this.metricsUrl = `http://127.0.0.1:${ports.metrics}/metrics`;
    this.#child = child;
    this.caBundle = provided.certificate.ca;
    this.certificateFolder = provided.folder;
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        resolve({ code, signal });
      });
    });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        this.#lines.push(line);
      });
    }
  }

  /** Starts the process without waiting for it. */
  static async spawn(role: Role, options: ProcessOptions): Promise<BoostProcess> {
    const { webhook, health, metrics } = await freePorts();
    const folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-certificates-'));
    const certificate = await aCertificate();
    await writeCertificateFiles(folder, certificate);
    const bundle = options.bundlePath ?? join(process.cwd(), 'dist', 'startup-cpu-boost.cjs');
    // setpriv becomes the process; the kernel ends it when this one is gone, however that went.
    // A group of its own: Ctrl-C in a terminal is for us, who then stop it in order.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, bundle, role], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        KUBECONFIG: options.kubeconfigPath,
        WEBHOOK_BIND_ADDR: '127.0.0.1',
        WEBHOOK_PORT: String(webhook),
        HEALTH_PROBE_BIND_ADDR: `127.0.0.1:${health}`,
        METRICS_PROBE_BIND_ADDR: `127.0.0.1:${metrics}`,
        CERT_MODE: 'provided',
        CERT_DIR: folder,
        // No Service goes on sending calls here.
        WEBHOOK_DRAIN_SECONDS: '0',
        ...options.env,
      },
    });
    // Without a listener an event 'error' would end this process; the missing PID says the same.
    child.once('error', () => undefined);
    return new BoostProcess(role, child, { webhook, health, metrics }, { folder, certificate });
  }

  /** The log, one parsed object per line; lines that are no JSON objects are left out. */
  logs(): readonly JsonObject[] {
    return this.#lines.flatMap((line) => parseLine(line));
  }

  /** Everything that was written to standard output and error. */
  output(): string {
    return this.#lines.join('\n');
  }

  async ready(): Promise<void> {
    const end = Date.now() + READY_WITHIN_MS;
    let gone: Exit | undefined;
    void this.exited.then((exit) => {
      gone = exit;
    });
    while (!(await this.#answersReady())) {
      if (gone !== undefined) {
        throw new Error(
          `${this.role} ended with ${String(gone.code ?? gone.signal)}${this.#tail()}`,
        );
      }
      if (Date.now() > end) throw new Error(`${this.role} is not ready in time${this.#tail()}`);
      await delay(50);
    }
  }

  /** Stands still, as on a machine that is suspended or short of CPU, until `resume`. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the process has ended. */
  async stop(signal: StopSignal = 'SIGTERM'): Promise<Exit> {
    this.#child.kill(signal);
    const exit = await this.exited;
    await rm(this.certificateFolder, { recursive: true, force: true });
    return exit;
  }

  async #answersReady(): Promise<boolean> {
    try {
      const response = await fetch(`${this.healthUrl}/readyz`, {
        signal: AbortSignal.timeout(2_000),
      });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  #tail(): string {
    return `; its last lines:\n${this.#lines.slice(-10).join('\n')}`;
  }
}

async function freePorts(): Promise<Ports> {
  const [webhook, health, metrics] = await Promise.all([freePort(), freePort(), freePort()]);
  return { webhook, health, metrics };
}

export function freePort(host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, host, () => {
      const address = server.address();
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no port'));
        else resolve(address.port);
      });
    });
  });
}

function parseLine(line: string): readonly JsonObject[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? [Object.fromEntries(Object.entries(value))]
      : [];
  } catch {
    return [];
  }
}
