/** npm run test:node [-- jest arguments]: the chart and the image on real nodes, and real cgroups. */
import { join } from 'node:path';
import { ensureDependencies } from './lib/dependencies.mjs';
import { imageTar } from './image.mjs';
import { ensureNewestNode } from './lib/newestNode.mjs';
import { ensureNodePrograms, missingPackages, withNodeCluster } from './lib/nodeCluster.mjs';
import { Failure, main, root, run, say } from './lib/processes.mjs';

const image = 'local/kube-startup-cpu-boost:test';
const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');

await main(async () => {
  const args = process.argv.slice(2);
  if (args[0] === '--packages') {
    process.stdout.write(
      missingPackages()
        .map((name) => `${name}\n`)
        .join(''),
    );
    return 0;
  }
  await ensureDependencies();
  const programs = await ensureNodePrograms();
  if (programs.kind === 'Absent') {
    throw new Failure(
      `no real node can run here:\n${programs.reasons.map((why) => `  ${why}`).join('\n')}`,
    );
  }
  const node = await ensureNewestNode();
  // The same bytes for the same source, moved into place whole: runs side by side may share it.
  const tar = join(root, 'build', 'image.tar');
  say('building the image...');
  await imageTar(tar, { name: image, node });
  return withNodeCluster({ nodes: 2, images: [tar], bin: programs.bin }, (cluster) =>
    runTests(args, {
      CLUSTER_BIN: programs.bin,
      NODE_TEST_KUBECONFIG: cluster.kubeconfig,
      NODE_TEST_IMAGE: image,
      NODE_TEST_IMAGE_TAR: tar,
    }),
  );
});

/** One file after the other: they share the nodes, and each installs the chart anew. */
async function runTests(args, env) {
  const flags = [
    '--testTimeout=300000',
    '--forceExit',
    '--runInBand',
    '--verbose',
    '--selectProjects',
    'node',
  ];
  const { code } = await run(process.execPath, [jest, ...args, ...flags], { env });
  return code;
}
