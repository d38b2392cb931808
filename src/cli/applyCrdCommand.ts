/** `apply-crd`: its arguments, what it prints, and its exit code. */
import { parseArgs } from 'node:util';
import { customResourceDefinition } from '../resources';
import { applyCrd } from './applyCrd';
import type { ApplyCrdOptions, ApplyCrdOutcome, LossOfBoost } from './applyCrd';
import { explain, withClient } from './commandRun';
import { parseDuration } from './duration';
import { ProgressLine } from './progressLine';
import { parseApplyCrdSettings } from './settings';
import type { Environment } from './settings';
import { printable } from './terminal';
import type { Terminal } from './terminal';

export const APPLY_CRD_USAGE = `usage: startup-cpu-boost apply-crd [--timeout 2m] [--drop-unknown-fields]

Creates the CustomResourceDefinition of StartupCPUBoost, or brings the one that is there, whoever
installed it, to that of this version, and waits until it is served. Stored boosts stay. Where it would
take something from them it changes nothing, and says what: versions that boosts are stored in, and
fields that this version does not know. Helm runs it before each install and upgrade.

  --timeout TIME         gives up after this time, such as 90s, 2m or 1h (default 2m)
  --drop-unknown-fields  goes on where boosts have such fields; they lose them at their next change

Exit codes: 0 it is as this version has it, 1 it is not, 2 called or configured wrongly.
It may be run at any time and again. It reads KUBECONFIG; see docs/settings.md.
`;

export type ApplyCrdArguments =
  | { readonly kind: 'Help' }
  | {
      readonly kind: 'Apply';
      readonly timeoutMs: number;
      readonly unknownFields: ApplyCrdOptions['unknownFields'];
    }
  | { readonly kind: 'Wrong'; readonly problem: string };

/** Less than Helm waits for a hook by default (5 minutes), so that the reason is told and not only the time. */
const DEFAULT_TIMEOUT = '2m';

/** Boosts that are listed by name; a page of a terminal. */
const MAX_LISTED_BOOSTS = 50;

const NAME = `CustomResourceDefinition ${customResourceDefinition().metadata.name}`;

export function parseApplyCrdArguments(args: readonly string[]): ApplyCrdArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        timeout: { type: 'string', default: DEFAULT_TIMEOUT },
        'drop-unknown-fields': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { kind: 'Help' };
    const timeoutMs = parseDuration(values.timeout);
    if (timeoutMs === undefined) {
      const problem = `--timeout ${values.timeout}: must be a time such as 90s, 2m or 1h30m`;
      return { kind: 'Wrong', problem };
    }
    const unknownFields = values['drop-unknown-fields'] ? 'Drop' : 'Keep';
    return { kind: 'Apply', timeoutMs, unknownFields };
  } catch (error) {
    return { kind: 'Wrong', problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Resolves with the exit code. */
export async function applyCrdCommand(
  env: Environment,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const asked = parseApplyCrdArguments(args);
  if (asked.kind !== 'Apply') return explain(asked, APPLY_CRD_USAGE, terminal);
  const { timeoutMs, unknownFields } = asked;
  return withClient(parseApplyCrdSettings(env), terminal, async ({ client, clock }) => {
    const line = new ProgressLine(terminal.err);
    const ending = new AbortController();
    const deadline = clock.setTimer(timeoutMs, () => {
      ending.abort();
    });
    try {
      const outcome = await applyCrd({
        client,
        clock,
        unknownFields,
        onWait: (what) => {
          line.show(printable(what), clock.monotonic());
        },
        signal: ending.signal,
      });
      line.clear();
      return reportOutcome(outcome, terminal);
    } finally {
      deadline.cancel();
    }
  });
}

function reportOutcome(outcome: ApplyCrdOutcome, { out, err }: Terminal): number {
  switch (outcome.kind) {
    case 'Created':
      out.write(`${NAME}: created, and served\n`);
      return 0;
    case 'Updated':
      out.write(`${NAME}: updated to this version, and served; stored boosts stay\n`);
      return 0;
    case 'Unchanged':
      out.write(`${NAME}: is as this version has it, and served\n`);
      return 0;
    case 'VersionsMissing':
      err.write(`${NAME}: left as it is\n${aboutVersions(outcome.versions)}`);
      return 1;
    case 'FieldsLost':
      err.write(`${NAME}: left as it is\n${aboutFields(outcome.boosts)}`);
      return 1;
    case 'NotServed':
      err.write(`${NAME}: not served: ${printable(outcome.why)}\n`);
      return 1;
    case 'Failed':
      err.write(`${NAME}: ${printable(outcome.problem)}\n`);
      return 1;
  }
}

function aboutVersions(versions: readonly string[]): string {
  return `Boosts may be stored in ${versions.map(printable).join(', ')}, which this version cannot read: it comes from a newer one. Install that, or migrate the boosts and take the version off status.storedVersions.
`;
}

function aboutFields(boosts: readonly LossOfBoost[]): string {
  const listed = boosts.slice(0, MAX_LISTED_BOOSTS);
  const more = boosts.length - listed.length;
  return [
    'These boosts have fields that this version does not know, and would lose them:',
    ...listed.map(
      ({ namespace, name, fields }) => `  ${namespace}/${name}: ${printable(fields.join(', '))}`,
    ),
    ...(more > 0 ? [`  and ${more} more`] : []),
    'Install a version that knows them, take them out of the boosts, or run apply-crd with --drop-unknown-fields.',
    '',
  ].join('\n');
}
