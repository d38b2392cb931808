/** The container image: its files for the Dockerfile, and all of it as a tar where there is no Docker. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundle, bundlePath } from './build.mjs';
import { billOfMaterials, bundledPackages, notices } from './lib/bundledPackages.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { runtimeStage } from './lib/dockerfile.mjs';
import { main, must, root, say } from './lib/processes.mjs';

const usage = `usage: node scripts/image.mjs layout FOLDER
       node scripts/image.mjs tar FILE [--name IMAGE:TAG] [--node PROGRAM]

  layout  writes the files of the image that are not of its base image; the Dockerfile calls it
  tar     writes an image that \`docker load\` and \`ctr images import\` take: what the Dockerfile
          says, on a base of this machine's C library and the Node PROGRAM (the present one)`;

/** Everything under /layout of the Dockerfile's build stage; the dependencies are there already. */
export async function layout(folder) {
  const app = join(folder, 'app');
  mkdirSync(app, { recursive: true });
  const packages = bundledPackages(await buildBundle());
  const text = (name, content) => writeFileSync(join(app, name), content);
  copyFileSync(bundlePath, join(app, 'startup-cpu-boost.cjs'));
  copyFileSync(join(root, 'LICENSE'), join(app, 'LICENSE'));
  text('THIRD-PARTY-NOTICES.txt', notices(packages));
  text('sbom.cdx.json', `${JSON.stringify(billOfMaterials(packages), undefined, 2)}\n`);
}

/** The last stage of the Dockerfile with a Node of this machine in the place of its base image. */
export async function imageTar(file, { name, node = process.execPath }) {
  const { copies, labels, user, entrypoint, command } = runtimeStage();
  const [program] = entrypoint;
  const folder = mkdtempSync(join(tmpdir(), 'startup-cpu-boost-image-'));
  try {
    await layout(join(folder, 'layout'));
    mkdirSync(dirname(file), { recursive: true });
    await must('python3', [
      join(root, 'test', 'cluster', 'mkimage.py'),
      file,
      `--name=${name}`,
      `--bin=${node}:${program}`,
      ...copies.map(({ from, to }) => `--tree=${join(folder, from)}:${to}`),
      ...Object.entries(labels).map(([key, value]) => `--label=${key}=${value}`),
      `--user=${user}`,
      ...entrypoint.map((word) => `--entrypoint=${word}`),
      '--',
      ...command,
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        name: { type: 'string', default: 'startup-cpu-boost:dev' },
        node: { type: 'string', default: process.execPath },
        help: { type: 'boolean' },
      },
    });
    const [command, target] = positionals;
    if (values.help) return { ...values, command: 'help' };
    if (positionals.length !== 2 || !['layout', 'tar'].includes(command)) {
      throw new Error('one command and one path are needed');
    }
    return { ...values, command, target: resolve(target) };
  } catch (error) {
    say(`${error.message}\n\n${usage}`);
    return undefined;
  }
}

async function perform({ command, target, name, node }) {
  switch (command) {
    case 'help':
      process.stdout.write(`${usage}\n`);
      return;
    case 'layout':
      await layout(target);
      return;
    default:
      await ensureDependencies();
      await imageTar(target, { name, node });
      say(`${target}: ${name}`);
  }
}

if (process.argv[1] === import.meta.filename) {
  await main(async () => {
    const asked = options();
    if (asked === undefined) return 2;
    await perform(asked);
    return 0;
  });
}
