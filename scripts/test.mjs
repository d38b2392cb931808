/** npm test [-- jest arguments]: everything, against a real API server where one can be had. */
import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { buildBundle } from './build.mjs';
import {
  ensureBuilt,
  ensureControlPlane,
  environmentOf,
  howToGetOne,
} from './lib/controlPlane.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { main, root, run, say } from './lib/processes.mjs';

const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const withoutApi = ['--selectProjects', 'unit', 'property'];
const withApi = [...withoutApi, 'api'];

/** Whether all the paths that were asked for are tests without an API server. */
function asksForPureTestsOnly(args) {
  const paths = args.filter((arg) => !arg.startsWith('-') && existsSync(arg));
  return (
    paths.length > 0 && paths.every((path) => /^test\/(unit|property)(\/|$)/.test(fromRoot(path)))
  );
}

const fromRoot = (path) => relative(root, resolve(path));

function box(lines) {
  const width = Math.max(...lines.map((line) => line.length));
  const rule = '-'.repeat(width + 2);
  return [`+${rule}+`, ...lines.map((line) => `| ${line.padEnd(width)} |`), `+${rule}+`].join('\n');
}

/** What the tests of the chart find by themselves, see test/support/chart.ts and typeChecker.ts. */
const chartTools = ['helm', 'kubectl', 'kube-controller-manager'];
const chartTests = 'test/api/(chart|chartCluster|helm|kustomize|migration|policies)\\.test\\.ts$';

async function withControlPlane(args, env) {
  const tools = await ensureBuilt(chartTools, 'Helm and kube-controller-manager', 5);
  await buildBundle();
  const jestArgs = [jest, '--forceExit', ...args, ...withApi];
  if (tools.kind === 'Programs') return (await run(process.execPath, jestArgs, { env })).code;
  jestArgs.push('--testPathIgnorePatterns', chartTests);
  const { code } = await run(process.execPath, jestArgs, { env });
  say(box(['The tests of the chart were SKIPPED: no Helm.', `Why: ${tools.reason}.`]));
  return process.env.CI === 'true' ? 1 : code;
}

await main(async () => {
  const args = process.argv.slice(2);
  await ensureDependencies();
  if (asksForPureTestsOnly(args)) {
    return (await run(process.execPath, [jest, '--forceExit', ...args, ...withoutApi])).code;
  }

  const controlPlane = await ensureControlPlane();
  if (controlPlane.kind !== 'Absent') {
    return withControlPlane(args, environmentOf(controlPlane));
  }
  const { code } = await run(process.execPath, [jest, '--forceExit', ...args, ...withoutApi]);
  const inCi = process.env.CI === 'true';
  say(
    box([
      'The API tests were SKIPPED: no Kubernetes API server.',
      `Why: ${controlPlane.reason}.`,
      ...howToGetOne.split('\n'),
      'Or set TEST_KUBECONFIG to the kubeconfig of a cluster that tests may use.',
      ...(inCi ? ['With CI=true that is a failure.'] : []),
    ]),
  );
  return inCi ? 1 : code;
});
