/** Commands of our documents, as a person pastes them into a shell. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { toolFolder } from './chart';

const run = promisify(execFile);

export interface GuideStep {
  /** Such as `docs/migration.md`. */
  readonly guide: string;
  /** The comment before the commands. */
  readonly step: string;
  readonly folder: string;
  readonly kubeconfigPath: string;
  /** What the guide has people set before. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Standard output; rejects where a command fails. */
export async function followGuide(options: GuideStep): Promise<string> {
  const { guide, step, folder, kubeconfigPath, env } = options;
  const text = await readFile(guide, 'utf8');
  const [, commands] = new RegExp(`<!-- ${step} -->\n+\`\`\`sh\n([^]*?)\`\`\``).exec(text) ?? [];
  if (commands === undefined) throw new Error(`${guide} has no step ${step}`);
  // Helm and kubectl are beside each other.
  const path = `${await toolFolder('helm')}:${process.env.PATH ?? ''}`;
  const { stdout } = await run('sh', ['-euc', commands], {
    cwd: folder,
    env: { PATH: path, HOME: folder, KUBECONFIG: kubeconfigPath, ...env },
    maxBuffer: 64 * 2 ** 20,
  });
  return stdout;
}
