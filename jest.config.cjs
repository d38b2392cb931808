/**
 * Jest for TypeScript as CommonJS; packages that ship ES modules only are transformed too, since
 * Node 20 cannot require() them from inside Jest's module registry.
 */
const esmOnly = [
  '@kubernetes/client-node',
  'openid-client',
  'oauth4webapi',
  'jose',
  'jsonpath-plus',
];
const swc = [
  '@swc/jest',
  {
    jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
    module: { type: 'commonjs' },
    sourceMaps: 'inline',
  },
];

/** @param {string} name */
const project = (name) => ({
  displayName: name,
  rootDir: __dirname,
  testEnvironment: 'node',
  testMatch: [`<rootDir>/test/${name}/**/*.test.ts`],
  transform: {
    '^.+\\.ts$': swc,
    [`/node_modules/(?:${esmOnly.join('|')})/.+\\.js$`]: swc,
  },
  transformIgnorePatterns: [`/node_modules/(?!(?:${esmOnly.join('|')})/)`],
});

/** @type {import('jest').Config} */
module.exports = {
  projects: [project('unit'), project('property'), project('api'), project('node')],
  // A search with more runs than the 300 of test/support/fuzzing.ts takes so much longer.
  testTimeout: 60_000 * Math.max(1, Number(process.env.FC_NUM_RUNS ?? 300) / 300),
};
