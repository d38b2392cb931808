/** npm run test:chaos [-- --minutes M --seed N --keep-logs]: the long form of test/api/chaos. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundle } from './build.mjs';
import { ensureControlPlane, environmentOf, howToGetOne } from './lib/controlPlane.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { Failure, main, root, run, say } from './lib/processes.mjs';

const usage = `usage: npm run test:chaos [-- [--minutes M] [--seed N] [--keep-logs]]

Three admission and three controller processes on a real API server, pods all the time, and faults
by chance; afterwards the whole history is checked. Ends with 0 if no pod missed its boost or kept it.

  --minutes M  for so long pods are created; 10 unless given
  --seed N     the same pods and faults as a run that printed this seed (times differ: processes
               do not run to the millisecond); by chance unless given
  --keep-logs  keeps the logs, the audit log too, though all went well
  --help       this text`;

function options() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '10' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        'keep-logs': { type: 'boolean', default: false },
        help: { type: 'boolean' },
      },
    });
    for (const name of ['minutes', 'seed']) {
      if (!/^\d{1,9}$/.test(values[name]) || (name === 'minutes' && Number(values[name]) === 0)) {
        throw new Error(`--${name} must be a whole number, and is "${values[name]}"`);
      }
    }
    return values;
  } catch (error) {
    say(`${error.message}\n\n${usage}`);
    return undefined;
  }
}

await main(async () => {
  const asked = options();
  if (asked === undefined) return 2;
  if (asked.help) {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  await ensureDependencies();
  const controlPlane = await ensureControlPlane({ existingCluster: false });
  if (controlPlane.kind === 'Absent') {
    throw new Failure(
      `the chaos run needs a Kubernetes API server, and ${controlPlane.reason}.\n${howToGetOne}`,
    );
  }
  await buildBundle();
  // TEST_KUBECONFIG is emptied: the run ends its API server again and again.
  const env = {
    ...environmentOf(controlPlane),
    TEST_KUBECONFIG: '',
    CHAOS_MINUTES: asked.minutes,
    CHAOS_SEED: asked.seed,
    CHAOS_KEEP_LOGS: String(asked['keep-logs']),
  };
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const args = [jest, '--forceExit', '--selectProjects', 'api', '--runTestsByPath'];
  return (await run(process.execPath, [...args, 'test/api/chaos/chaos.test.ts'], { env })).code;
});
