/** The commands of the program, each from settings to a process that runs until it is told to stop. */
import { startAdmissionProcess } from './admissionCommand';
import { applyCrdCommand } from './applyCrdCommand';
import { checkCommand } from './checkCommand';
import { startControllerProcess } from './controllerCommand';
import { runUntilSignal } from './processLife';
import { revertAllCommand } from './revertAllCommand';
import { parseAdmissionSettings, parseControllerSettings } from './settings';
import type { Environment } from './settings';

interface Command {
  readonly name: string;
  readonly summary: string;
  /** Resolves with the exit code; undefined for arguments where there are none. */
  readonly run: (env: Environment, args: readonly string[]) => Promise<number> | undefined;
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'admission',
    summary: 'answers the webhooks: boosts pods when they are created, validates boosts',
    run: withoutArguments((env) =>
      runUntilSignal('admission', parseAdmissionSettings(env), (context) =>
        startAdmissionProcess(context),
      ),
    ),
  },
  {
    name: 'controller',
    summary: 'gives boosted pods their CPU back, and keeps the status of the boosts',
    run: withoutArguments((env) =>
      runUntilSignal('controller', parseControllerSettings(env), (context) =>
        startControllerProcess(context),
      ),
    ),
  },
  {
    name: 'revert-all',
    summary: 'gives every boosted pod its CPU back now, and stops boosting; see revert-all --help',
    run: (env, args) => revertAllCommand(env, args, { out: process.stdout, err: process.stderr }),
  },
  {
    name: 'apply-crd',
    summary: 'brings the CRD of the cluster to that of this version; see apply-crd --help',
    run: (env, args) => applyCrdCommand(env, args, { out: process.stdout, err: process.stderr }),
  },
  {
    name: 'check',
    summary: 'says whether an installation works; see check --help',
    run: (env, args) => checkCommand(env, args, { out: process.stdout, err: process.stderr }),
  },
];

function withoutArguments(run: (env: Environment) => Promise<number>): Command['run'] {
  return (env, args) => (args.length === 0 ? run(env) : undefined);
}

export function usage(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  return [
    'usage: startup-cpu-boost COMMAND',
    '',
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Settings are environment variables: see docs/settings.md.',
    '',
  ].join('\n');
}
