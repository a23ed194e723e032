// How the tests run: real processes, two files at a time, and never a second try.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    retry: 0,
    passWithNoTests: false,
    reporters: ['default', ['json', { outputFile: '.reports/vitest.json' }]],
  },
})
