// What knip, the finder of unused files, exports and dependencies, must know about this house.
export default {
  entry: [
    'src/index.ts',
    'src/engines/postgres/adapters.ts',
    'src/server/index.ts',
    'src/testing/index.ts',
    'src/cli/main.ts',
    'examples/**/*.js',
    'bench/*/main.js',
    'test/simulation/main.ts',
    'test/types/*.test-d.ts',
    'test/**/*.slow.ts',
  ],
  project: ['{src,test,bench,examples,scripts}/**/*.{ts,js}'],
  // Of Debian's package, for `npm run test:slow -- pooler`.
  ignoreBinaries: ['pgbouncer'],
  // A type that a signature in its own file names is exported for the reader of that signature.
  ignoreExportsUsedInFile: { interface: true, type: true },
  // Tests and examples import what was built; knip looks at the source behind it.
  compilers: { ts: toSources, js: toSources },
}

function toSources(text) {
  return text.replaceAll('../dist/', '../src/')
}
