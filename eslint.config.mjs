import tseslint from 'typescript-eslint';

/** What the pure engine may not touch: whoever imports the library must get data in, data out. */
const pureEngine = {
  'no-restricted-imports': [
    'error',
    {
      patterns: [
        {
          regex: '^(?!\\./|re2js$)',
          message:
            'src/boost-engine is pure: it imports its own files and re2js, nothing else (docs/adr/0001).',
        },
      ],
    },
  ],
  'no-restricted-globals': [
    'error',
    ...[
      'process',
      'console',
      'setTimeout',
      'setInterval',
      'setImmediate',
      'fetch',
      'performance',
    ].map((name) => ({
      name,
      message: 'src/boost-engine has no I/O and no clock (docs/adr/0001).',
    })),
  ],
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: 'Time comes in as a value (docs/adr/0001).' },
    {
      object: 'Math',
      property: 'random',
      message: 'A decision has no chance in it (docs/adr/0001).',
    },
  ],
  'no-restricted-syntax': [
    'error',
    {
      selector: "NewExpression[callee.name='Date'][arguments.length=0]",
      message: 'Time comes in as a value (docs/adr/0001).',
    },
    {
      selector: "NewExpression[callee.name='RegExp']",
      message: 'User patterns run in linear time: use re2js (docs/adr/0001).',
    },
  ],
};

export default tseslint.config(
  { ignores: ['dist', 'build', 'coverage', 'node_modules', 'test/cluster'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      complexity: ['error', 12],
      'max-depth': ['error', 3],
    },
  },
  { files: ['src/boost-engine/**/*.ts'], rules: pureEngine },
);
