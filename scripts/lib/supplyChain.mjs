/** What comes from others, judged without a network: package-lock.json, and the packages in the bundle. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildBundle } from '../build.mjs';
import { bundledPackages } from './bundledPackages.mjs';
import { Failure, root, say } from './processes.mjs';

/** What ships in the bundle, whose users have to be told of no condition but the notice. */
const BUNDLED_LICENCES = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'Unlicense',
]);

/** Of tools, which nobody is given. */
const TOOL_LICENCES = new Set([
  ...BUNDLED_LICENCES,
  '(MIT OR CC0-1.0)',
  'Apache-2.0 AND MIT',
  'BlueOak-1.0.0',
  'CC-BY-4.0',
  'Python-2.0',
]);

/** Tools that run a program when they are installed: each finds or unpacks its native part. */
const INSTALL_SCRIPTS = new Set(['@parcel/watcher', '@swc/core', 'esbuild']);

/** Fails with a line for each package that is not as it should be. */
export async function verifySupplyChain() {
  const locked = lockedPackages();
  const bundled = new Set(bundledPackages(await buildBundle()).map(({ name }) => name));
  const problems = [
    ...locked.flatMap(lockProblems),
    ...listProblems(bundled, listedPackages()),
    ...locked.filter(({ name }) => bundled.has(name)).flatMap(bundleProblems),
  ];
  if (problems.length > 0) throw new Failure(problems.join('\n'));
  say(`${locked.length} packages locked, ${bundled.size} of them in the bundle`);
}

/** One for each place in node_modules. */
function lockedPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => ({ ...entry, name: path.split('node_modules/').at(-1) }));
}

function lockProblems({ name, version, integrity = '', resolved, license, hasInstallScript }) {
  const of = `package-lock.json: ${name} ${version}`;
  const problems = [];
  if (!integrity.startsWith('sha512-')) problems.push(`${of} has no SHA-512`);
  // With .npmrc it says where nothing comes from; what does comes from git, a file or a strange host.
  if (resolved !== undefined) problems.push(`${of} comes from ${resolved}, not from the registry`);
  if (!TOOL_LICENCES.has(license)) problems.push(`${of} has the licence ${license}`);
  if (hasInstallScript === true && !INSTALL_SCRIPTS.has(name)) {
    problems.push(`${of} runs a program when it is installed`);
  }
  return problems;
}

function bundleProblems({ name, license, hasInstallScript }) {
  const of = `the bundle: ${name}`;
  const problems = [];
  if (!BUNDLED_LICENCES.has(license)) problems.push(`${of} has the licence ${license}`);
  if (hasInstallScript === true) problems.push(`${of} runs a program when it is installed`);
  return problems;
}

/** The list in docs/dependencies.md is what may be in the bundle, and what people read. */
function listedPackages() {
  const text = readFileSync(join(root, 'docs', 'dependencies.md'), 'utf8');
  const section = /^## Inside the bundle$([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text)?.[1] ?? '';
  return new Set([...section.matchAll(/`([^`\s]+)`/g)].map(([, name]) => name));
}

function listProblems(bundled, listed) {
  const where = 'docs/dependencies.md, "Inside the bundle"';
  return [
    ...[...bundled].filter((name) => !listed.has(name)).map((name) => `${where} has not ${name}`),
    ...[...listed]
      .filter((name) => !bundled.has(name))
      .map((name) => `${where} has ${name}, the bundle has not`),
  ];
}
