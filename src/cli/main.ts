/** Entry point: one program, one command for each kind of process. */
import { COMMANDS, usage } from './commands';

/** Exit codes: 0 done or asked to stop, 1 failed, 2 called or configured wrongly. */
async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(usage());
    return 0;
  }
  const command = COMMANDS.find((candidate) => candidate.name === name);
  const running = command?.run(process.env, rest);
  if (running === undefined) {
    const what = name === undefined ? 'no command given' : `unknown command: ${args.join(' ')}`;
    process.stderr.write(`${what}\n\n${usage()}`);
    return 2;
  }
  return running;
}

// exit() and not exitCode: open watches and sockets would keep a process that failed to start.
main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(
      `${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exit(1);
  },
);
