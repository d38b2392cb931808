/** npm run demo [-- --keep]: the whole life of a few boosts, on a real API server. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundle, bundle, bundlePath } from './build.mjs';
import { ensureControlPlane, environmentOf, howToGetOne } from './lib/controlPlane.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { Failure, main, root, run, say } from './lib/processes.mjs';

const usage = `usage: npm run demo [-- --keep]

Starts an API server with etcd, admission and controller, creates boosts and pods, and shows
what happens to their CPU. Takes about a minute, cleans up, and ends by itself; the first time
it builds the API server, which takes about 5 minutes more.

  --keep   leaves everything running until Ctrl-C, for trying things with kubectl
  --help   this text`;

function options() {
  try {
    return parseArgs({ options: { keep: { type: 'boolean' }, help: { type: 'boolean' } } }).values;
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
      `the demo needs a Kubernetes API server, and ${controlPlane.reason}.\n${howToGetOne}`,
    );
  }
  await buildBundle();
  const demo = join(root, 'build', 'demo.cjs');
  await bundle('demo/main.ts', demo, { sourcemap: 'inline', sourcesContent: false });
  // TEST_KUBECONFIG is emptied: the demo plays the node, which only fits a cluster without any.
  const env = {
    ...environmentOf(controlPlane),
    TEST_KUBECONFIG: '',
    STARTUP_CPU_BOOST_BUNDLE: bundlePath,
  };
  const args = ['--enable-source-maps', demo, ...(asked.keep ? ['--keep'] : [])];
  return (await run(process.execPath, args, { env, endsOnSignal: true })).code;
});
