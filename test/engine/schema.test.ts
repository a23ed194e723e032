// The tables of a fresh store are those of the committed snapshot, and the page about the format names all of them.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { migrations } from '../../dist/engines/sqlite/schema.js'
import { states } from '../../dist/task/lifecycle.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const snapshot = join(root, 'src', 'engines', 'sqlite', 'schema.sql')
const page = readFileSync(join(root, 'docs', 'format.md'), 'utf8')

const head = `-- What sqlite_master says of a fresh store: the file format, as every other program sees it.
-- Made by PW_RENEW_SCHEMA=1 npx vitest run test/engine/schema.test.ts; docs/format.md says what it all means.
`

function fresh(): Database.Database {
  const db = new Database(':memory:')
  for (const { sql } of migrations) db.exec(sql)
  return db
}

/** Every statement, the tables first, without the comments that stand in ours. */
function schemaOf(db: Database.Database): string {
  const order = "case type when 'table' then 1 when 'index' then 2 else 3 end, rowid"
  const rows = db
    .prepare(`select sql from sqlite_master where name not like 'sqlite_%' order by ${order}`)
    .pluck()
    .all()
  const text = (rows as string[]).map((sql) => `${sql.replace(/ *--.*$/gm, '')};\n`).join('\n')
  return `${head}\n${text.replace(/create (table|index|view)/gi, (words) => words.toLowerCase())}`
}

it('is what the snapshot says', () => {
  const schema = schemaOf(fresh())
  if (process.env.PW_RENEW_SCHEMA === '1') writeFileSync(snapshot, schema)
  expect(readFileSync(snapshot, 'utf8')).toBe(schema)
})

it('can be made from the snapshot alone', () => {
  const db = new Database(':memory:')
  db.exec(readFileSync(snapshot, 'utf8'))
  expect(schemaOf(db)).toBe(schemaOf(fresh()))
})

/** The chapters of the page by the table they are about. */
function chapters(): Map<string, string> {
  const parts = page.split(/^### /m).slice(1)
  return new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')).replaceAll('`', '').trim(), part]))
}

it('is explained: every table and view has its chapter, and every column a word in it', () => {
  const db = fresh()
  const names = db.prepare("select name from sqlite_master where type in ('table', 'view') and name like 'piecework%'")
  const tables = names.pluck().all() as string[]
  const explained = chapters()
  expect([...explained.keys()].sort()).toEqual([...tables].sort())
  for (const table of tables) {
    const columns = db.prepare('select name from pragma_table_info(?)').pluck().all(table) as string[]
    const missing = columns.filter((column) => !explained.get(table)?.includes(`\`${column}\``))
    expect(missing, `columns of ${table} that docs/format.md does not explain`).toEqual([])
    const words = [...(explained.get(table) ?? '').matchAll(/^\| `(\w+)`/gm)].map((match) => match[1])
    expect(
      words.filter((word) => !columns.includes(word ?? '')),
      `not in ${table}`,
    ).toEqual([])
  }
})

it('numbers the states as the page says', () => {
  for (const [n, state] of states.entries()) expect(page).toContain(`${n + 1} ${state}`)
})
