/** What both demos do as processes: end well when they are interrupted, and say how far they are. */
import type { Terminal } from './terminal';

/** Aborted by Ctrl-C and its like. */
export function interruption(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      interrupted.abort(new Error(signal));
    });
  }
  // A reader that went away, as in `npm run demo | head`: clean up all the same.
  process.stdout.on('error', () => {
    interrupted.abort(new Error('nobody reads the output'));
  });
  return interrupted.signal;
}

/** 130 is what shells make of Ctrl-C. */
export function codeOf(interrupted: AbortSignal, keeps: boolean): number {
  if (!interrupted.aborted) return 1;
  return keeps ? 0 : 130;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Rejects when the work does; a watch that ends well is not the end of the play. */
export function failureOf(work: Promise<void>): Promise<never> {
  return new Promise((_, reject) => {
    work.catch(reject);
  });
}

export function reportSteps(terminal: Terminal): (step: string) => void {
  let since = Date.now();
  return (step) => {
    const now = Date.now();
    terminal.line(`  up: ${step} (${((now - since) / 1_000).toFixed(1)} s)`, 'faint');
    since = now;
  };
}

export function start(main: () => Promise<number>): void {
  main().then(
    (code) => {
      process.exitCode = code;
    },
    (error: unknown) => {
      process.stderr.write(`${messageOf(error)}\n`);
      process.exitCode = 1;
    },
  );
}
