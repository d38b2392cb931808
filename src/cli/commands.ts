/** The commands of the program, each from settings to a process that runs until it is told to stop. */
import { startAdmissionProcess } from './admissionCommand';
import { startControllerProcess } from './controllerCommand';
import { runUntilSignal } from './processLife';
import { parseAdmissionSettings, parseControllerSettings } from './settings';
import type { Environment } from './settings';

interface Command {
  readonly name: string;
  readonly summary: string;
  /** Resolves with the exit code. */
  readonly run: (env: Environment) => Promise<number>;
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'admission',
    summary: 'answers the webhooks: boosts pods when they are created, validates boosts',
    run: (env) =>
      runUntilSignal('admission', parseAdmissionSettings(env), (context) =>
        startAdmissionProcess(context),
      ),
  },
  {
    name: 'controller',
    summary: 'gives boosted pods their CPU back, and keeps the status of the boosts',
    run: (env) =>
      runUntilSignal('controller', parseControllerSettings(env), (context) =>
        startControllerProcess(context),
      ),
  },
];

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
