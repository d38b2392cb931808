/** npm run demo [-- --keep]: the whole life of a few boosts, on a real API server or a real node. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundle, bundle, bundlePath } from './build.mjs';
import { imageTar } from './image.mjs';
import { ensureControlPlane, environmentOf, howToGetOne } from './lib/controlPlane.mjs';
import { ensureProgram, programs } from './lib/demoProgram.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { ensureNewestNode } from './lib/newestNode.mjs';
import { ensureNodePrograms } from './lib/nodeCluster.mjs';
import { Failure, main, root, run, say } from './lib/processes.mjs';

const usage = `usage: npm run demo [-- --keep]
       npm run demo -- --node [--program spring-boot|node] [--svg FILE] [--keep]

Starts an API server with etcd, admission and controller, creates boosts and pods, and shows
what happens to their CPU. Takes about a minute, cleans up, and ends by itself; the first time
it builds the API server, which takes about 5 minutes more.

  --node     on a real node (kubelet, containerd) with the operator installed by Helm: starts a
             program without and with a boost, and measures the time to Ready and its cgroup.
             Takes about 3 minutes, and needs root; the first time it builds Kubernetes and
             Helm, about 10 minutes more
  --program  what is started: a Spring Boot application, or a Node program with a heavy import;
             Spring Boot unless given, where there are Maven and a JDK
  --svg      where the picture goes; build/node-demo.svg unless given
  --keep     leaves everything running until Ctrl-C, for trying things with kubectl
  --help     this text`;

function options() {
  try {
    const { values } = parseArgs({
      options: {
        keep: { type: 'boolean', default: false },
        node: { type: 'boolean' },
        program: { type: 'string' },
        svg: { type: 'string' },
        help: { type: 'boolean' },
      },
    });
    const { node, program, svg } = values;
    if (!node && (program ?? svg) !== undefined)
      throw new Error('--program and --svg go with --node');
    if (program !== undefined && !programs.includes(program)) {
      throw new Error(`--program is ${programs.join(' or ')}, not ${program}`);
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
  return asked.node ? onNode(asked) : onApiServer(asked);
});

async function onApiServer({ keep }) {
  const controlPlane = await ensureControlPlane({ existingCluster: false });
  if (controlPlane.kind === 'Absent') {
    throw new Failure(
      `the demo needs a Kubernetes API server, and ${controlPlane.reason}.\n${howToGetOne}`,
    );
  }
  await buildBundle();
  // TEST_KUBECONFIG is emptied: the demo plays the node, which only fits a cluster without any.
  const env = {
    ...environmentOf(controlPlane),
    TEST_KUBECONFIG: '',
    STARTUP_CPU_BOOST_BUNDLE: bundlePath,
  };
  return perform('demo/main.ts', keep ? ['--keep'] : [], env);
}

async function onNode({ keep, program: askedProgram, svg = 'build/node-demo.svg' }) {
  const cluster = await ensureNodePrograms();
  if (cluster.kind === 'Absent') {
    const reasons = cluster.reasons.map((reason) => `  ${reason}`).join('\n');
    throw new Failure(`the demo needs a real node, and none can run here:\n${reasons}`);
  }
  const node = await ensureNewestNode();
  const { tar, ...program } = await ensureProgram(askedProgram, node);
  const folder = mkdtempSync(join(tmpdir(), 'startup-cpu-boost-demo-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const operatorImage = 'local/kube-startup-cpu-boost:demo';
  const operatorTar = join(folder, 'operator.tar');
  say("building the operator's image...");
  await imageTar(operatorTar, { name: operatorImage, node });
  const plan = {
    bin: cluster.bin,
    operatorImage,
    images: [operatorTar, tar],
    program,
    svg: resolve(svg),
    keeps: keep,
  };
  return perform('demo/node/main.ts', [], { NODE_DEMO_PLAN: JSON.stringify(plan) });
}

async function perform(entry, args, env) {
  const program = join(root, 'build', 'demo.cjs');
  await bundle(entry, program, { sourcemap: 'inline', sourcesContent: false });
  const all = ['--enable-source-maps', program, ...args];
  return (await run(process.execPath, all, { env, endsOnSignal: true })).code;
}
