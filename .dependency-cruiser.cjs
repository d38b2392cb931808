/** Folder = layer; arrows point only downwards; a folder is entered by its index (docs/adr/0001). */
const layers = [
  ['boost-engine', []],
  ['resources', ['boost-engine']],
  ['observability', ['boost-engine', 'resources']],
  ['kube', ['boost-engine', 'resources', 'observability']],
  ['certificates', ['boost-engine', 'observability', 'kube']],
  ['controller', ['boost-engine', 'resources', 'observability', 'kube']],
  ['admission', ['boost-engine', 'resources', 'observability', 'kube', 'certificates']],
];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-deep-imports',
      comment: 'Another folder is entered by its index.ts.',
      severity: 'error',
      from: { path: '^src/([^/]+)/' },
      to: { path: '^src/[^/]+/', pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$'] },
    },
    ...layers.map(([folder, below]) => ({
      name: `layer-${folder}`,
      comment: `src/${folder} may use ${below.length === 0 ? 'nothing else' : below.join(', ')}.`,
      severity: 'error',
      from: { path: `^src/${folder}/` },
      to: { path: '^src/', pathNot: `^src/(${[folder, ...below].join('|')})/` },
    })),
    {
      name: 'client-node-behind-kube',
      comment:
        'The client library is behind src/kube alone, so that its next major is a change in one folder.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/kube/' },
      to: { path: 'node_modules/@kubernetes/client-node' },
    },
    {
      name: 'engine-depends-on-re2js-alone',
      severity: 'error',
      from: { path: '^src/boost-engine/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core'], pathNot: 'node_modules/re2js' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
