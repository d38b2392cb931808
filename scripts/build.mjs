/** Builds dist/: the one bundle that every process runs from, and the library. */
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensureDependencies } from './lib/dependencies.mjs';
import { main, must, root } from './lib/processes.mjs';

const dist = join(root, 'dist');
export const bundlePath = join(dist, 'startup-cpu-boost.cjs');

/** One CommonJS file for Node 20 and newer, with its dependencies inside. */
export async function bundle(entry, outfile, options = {}) {
  const { build } = await import('esbuild');
  return build({
    entryPoints: [join(root, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    logLevel: 'warning',
    ...options,
  });
}

/**
 * Written aside and moved into place: what runs from dist/ never sees half a file. Resolves with
 * esbuild's account of what went into it.
 */
export async function buildBundle() {
  return aside(async (folder) => {
    const name = basename(bundlePath);
    const { metafile } = await bundle('src/cli/main.ts', join(folder, name), {
      banner: { js: '#!/usr/bin/env node' },
      legalComments: 'external',
      // Names stay as they are, for stack traces and logs; most of the rest is the client's models.
      minifySyntax: true,
      minifyWhitespace: true,
      sourcemap: true,
      sourcesContent: false,
      metafile: true,
      // A dependency asks for Node's own, which warns on standard error that it is deprecated.
      alias: { punycode: 'punycode/' },
      // The package debug takes it where it is there by chance: tools bring it, no dependency does.
      external: ['supports-color'],
    });
    chmodSync(join(folder, name), 0o755);
    for (const file of [`${name}.map`, `${name}.LEGAL.txt`, name]) {
      renameSync(join(folder, file), join(dist, file));
    }
    return metafile;
  });
}

/** CommonJS and type declarations of src/boost-engine, as package.json exports them. */
export async function buildEngine() {
  await aside(async (folder) => {
    await must(process.execPath, [
      join(root, 'node_modules/typescript/bin/tsc'),
      '-p',
      'tsconfig.engine.json',
      '--outDir',
      join(folder, 'boost-engine'),
    ]);
    rmSync(join(dist, 'boost-engine'), { recursive: true, force: true });
    renameSync(join(folder, 'boost-engine'), join(dist, 'boost-engine'));
  });
}

export async function buildAll() {
  await buildBundle();
  await buildEngine();
}

async function aside(work) {
  const folder = join(dist, `.new-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  await main(async () => {
    await ensureDependencies();
    await buildAll();
  });
}
