// Draws the life cycle of a task into docs/architecture.md from its table; with --check it only compares.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lifecycle } from '../dist/task/lifecycle.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = process.argv.slice(2).find((word) => !word.startsWith('--')) ?? join(root, 'docs', 'architecture.md')
const open = lifecycle.cancel.from
const frame = /(<!-- made by npm run picture -->\n)[\s\S]*?(<!-- end -->)/

/** An event that finds or leaves tasks in all the open states is drawn once, at the box around them. */
const boxed = (states) => (open.every((state) => states.includes(state)) ? ['open'] : states)
const shown = (state) => state ?? '[*]'

/** One arrow for each pair of states, with all the events that lead from the one to the other. */
function arrows() {
  const found = new Map()
  for (const [event, { from, to }] of Object.entries(lifecycle)) {
    for (const start of boxed(from)) {
      for (const end of boxed(to)) {
        if (start === end) continue
        const arrow = `${shown(start)} --> ${shown(end)}`
        found.set(arrow, [...(found.get(arrow) ?? []), event])
      }
    }
  }
  return [...found].map(([arrow, events]) => `  ${arrow}: ${events.join(', ')}`)
}

/** Events that change a task and leave it in its state have no arrow; they must not be missed either. */
function staying() {
  return Object.entries(lifecycle)
    .flatMap(([event, { from, to }]) => {
      const states = boxed(from).filter((state) => boxed(to).includes(state))
      return states.length === 0 ? [] : [`${event} (${states.join(', ')})`]
    })
    .join(', ')
}

const picture = [
  '```mermaid',
  'stateDiagram-v2',
  '  state open {',
  ...open.map((state) => `    ${state}`),
  '  }',
  ...arrows(),
  '```',
  '',
  `No arrow for what leaves a task in its state: ${staying()}.`,
  '',
].join('\n')

const before = readFileSync(page, 'utf8')
const after = before.replace(frame, (_, first, last) => `${first}${picture}${last}`)
if (!frame.test(before)) {
  console.error(`${page} has no place for the picture: <!-- made by npm run picture --> … <!-- end -->`)
  process.exitCode = 2
} else if (!process.argv.includes('--check')) {
  writeFileSync(page, after)
} else if (after !== before) {
  console.error('the picture differs from src/task/lifecycle.ts: run npm run picture')
  process.exitCode = 1
}
