// How the tests run: real processes, two files at a time, and never a second try.
import { defineConfig } from 'vitest/config'

export default defineConfig(({ mode }) => ({
  test: {
    environment: 'node',
    // What needs a program that npm cannot bring, or minutes: `npm run test:slow`.
    include: [mode === 'slow' ? 'test/**/*.slow.ts' : mode === 'compat' ? 'compat/*.compat.ts' : 'test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    retry: 0,
    passWithNoTests: false,
    reporters: ['default', ['json', { outputFile: '.reports/vitest.json' }]],
  },
}))
