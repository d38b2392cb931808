/** The npm packages that are really inside the bundle, and what has to be said about them. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root } from './processes.mjs';

const here = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

/**
 * From esbuild's account: a package of which not one byte got into the output is not there.
 * @returns {{name: string, version: string, license: string, integrity: string, texts: string[]}[]}
 */
export function bundledPackages({ outputs }) {
  const paths = Object.values(outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .flatMap(([path]) => packagePath(path));
  return [...new Set(paths)].sort().map(describe);
}

/** `node_modules/a/node_modules/@b/c`, as the lock file names it; none for a file of our own. */
const packagePath = (file) =>
  /(?:^|\/)((?:node_modules\/(?:@[^/]+\/)?[^/]+\/)+)/.exec(file)?.[1].replace(/\/$/, '') ?? [];

function describe(path) {
  const { name, version, license } = JSON.parse(
    readFileSync(join(root, path, 'package.json'), 'utf8'),
  );
  const locked = lock.packages[path];
  if (locked?.version !== version) {
    throw new Failure(`${path} is ${version}, and ${locked?.version} in package-lock.json`);
  }
  if (typeof license !== 'string') throw new Failure(`${path} names no license`);
  return { name, version, license, integrity: locked.integrity, texts: licenseTexts(path) };
}

const licenseTexts = (path) =>
  readdirSync(join(root, path))
    .filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
    .sort()
    .map((name) => readFileSync(join(root, path, name), 'utf8').trim());

/** CycloneDX, without a time or a serial number: the same bundle has the same bill of materials. */
export function billOfMaterials(packages) {
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', ...identity(here) } },
    components: packages.map((each) => ({
      type: 'library',
      ...identity(each),
      hashes: [sha512(each.integrity)],
    })),
  };
}

function identity({ name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { 'bom-ref': purl, name, version, licenses: [licenseChoice(license)], purl };
}

const licenseChoice = (license) =>
  / (?:AND|OR|WITH) /.test(license) ? { expression: license } : { license: { id: license } };

function sha512(integrity) {
  const [, base64] = /^sha512-(\S+)$/.exec(integrity) ?? [];
  if (base64 === undefined) throw new Failure(`package-lock.json: no SHA-512 in "${integrity}"`);
  return { alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') };
}

/** The licenses ask for their text, and the names in it, to go with every copy. */
export function notices(packages) {
  const intro = `${here.name} contains these packages, each under the license that follows its name.\n`;
  const parts = packages.map(({ name, version, license, texts }) =>
    [`${name} ${version} (${license})`, ...texts].join('\n\n'),
  );
  return [intro, ...parts].join(`\n${'-'.repeat(80)}\n\n`).concat('\n');
}
