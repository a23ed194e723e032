// Starts the simulation: the tests are TypeScript, and vite, which runs them, can run this one file of them, too.
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
// Everything happens while the file is loaded: vite's runner is closed afterwards.
await runnerImport(fileURLToPath(new URL('../test/simulation/main.ts', import.meta.url)), { root, logLevel: 'error' })
