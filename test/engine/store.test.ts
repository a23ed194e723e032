// Files that are no store, not ours, too new, not writable or not there; and a file that two processes share.
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { engineFor, engineFrom } from '../../dist/engines/open.js'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-store-'))
  onTestFinished(() => {
    chmodSync(folder, 0o700)
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

const newFile = () => join(newFolder(), 'work.db')
const task = { queue: 'q', payload: '1' }

/** A store with one task, closed. */
async function makeStore(file: string): Promise<void> {
  const engine = engineFor(`sqlite:${file}`)
  await engine.open()
  await engine.enqueue(null, [task])
  await engine.close()
}

/** Opening is refused with this code, and neither the file nor its folder is changed by that. */
async function refusesUnchanged(file: string, code: string): Promise<void> {
  const look = () => [readFileSync(file).toString('base64'), readdirSync(join(file, '..')).sort()]
  const before = look()
  const engine = engineFor(`sqlite:${file}`)
  await expect(engine.open()).rejects.toMatchObject({ code, message: expect.stringContaining(file) })
  await expect(engine.enqueue(null, [task])).rejects.toMatchObject({ code: 'PW_CLOSED' })
  expect(look()).toEqual(before)
}

describe('a file that is not a store', () => {
  it('is refused when it is text', async () => {
    const file = newFile()
    writeFileSync(file, 'dear diary, today the queue was empty again\n'.repeat(100))
    await refusesUnchanged(file, 'PW_NOT_OURS')
  })

  it('is refused when it only begins like a database', async () => {
    const file = newFile()
    writeFileSync(file, `SQLite format 3\0${'garbage '.repeat(1000)}`)
    await refusesUnchanged(file, 'PW_NOT_OURS')
  })

  it('is refused when it is a folder', async () => {
    const file = newFile()
    mkdirSync(file)
    await expect(engineFor(`sqlite:${file}`).open()).rejects.toMatchObject({ code: 'PW_NOT_OURS' })
    expect(readdirSync(file)).toEqual([])
  })

  it('is refused when the store in it is damaged, and the damage is not made larger', async () => {
    const file = newFile()
    await makeStore(file)
    const bytes = readFileSync(file)
    bytes.fill(0x5a, 100, bytes.length)
    writeFileSync(file, bytes)
    await expect(engineFor(`sqlite:${file}`).open()).rejects.toMatchObject({ code: 'PW_STORE_DAMAGED' })
    expect(readFileSync(file).equals(bytes)).toBe(true)
  })

  it('becomes one when it is empty', async () => {
    const file = newFile()
    writeFileSync(file, '')
    await makeStore(file)
    expect(new Database(file).prepare('select count(*) from piecework_task').pluck().get()).toBe(1)
  })
})

describe("another program's database", () => {
  const strangers = () => {
    const file = newFile()
    const db = new Database(file)
    db.exec("create table theirs (x); insert into theirs values ('precious')")
    db.close()
    return file
  }

  it('is refused and left alone', () => refusesUnchanged(strangers(), 'PW_NOT_OURS'))

  it('is adopted by migrate, beside what is in it', async () => {
    const file = strangers()
    const engine = engineFor(`sqlite:${file}`)
    const before = readFileSync(file)
    const planned = await engine.migrate(true)
    expect(planned.join('')).toContain('create table piecework_task')
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(await engine.migrate(false)).toEqual(planned)
    expect(await engine.migrate(false)).toEqual([])
    await makeStore(file)
    expect(new Database(file).prepare('select x from theirs').pluck().get()).toBe('precious')
  })
})

describe('a store of a newer format', () => {
  it('is refused, and nothing in it is changed', async () => {
    const file = newFile()
    await makeStore(file)
    const db = new Database(file)
    db.exec('update piecework_store set format = 99; create table piecework_future (x)')
    db.close()
    await refusesUnchanged(file, 'PW_SCHEMA_NEW')
    await expect(engineFor(`sqlite:${file}`).migrate(false)).rejects.toMatchObject({ code: 'PW_SCHEMA_NEW' })
  })

  it('is not used any more when it became that under our hands', async () => {
    const file = newFile()
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    onTestFinished(() => engine.close())
    await engine.enqueue(null, [task])
    const db = new Database(file)
    db.exec('update piecework_store set format = 99')
    await expect(engine.enqueue(null, [task])).rejects.toMatchObject({ code: 'PW_SCHEMA_NEW' })
    await expect(engine.select('task', {}, null)).rejects.toMatchObject({ code: 'PW_SCHEMA_NEW' })
    expect(db.prepare('select count(*) from piecework_task').pluck().get()).toBe(1)
    db.close()
  })
})

/** What a user who is not root hears when opening the file; permissions do not bind root. */
function openAsUser(file: string): { code: string; message: string } {
  const from = new URL('../../dist/engines/open.js', import.meta.url).href
  const script = `import { engineFor } from '${from}'
    const engine = engineFor('sqlite:' + process.argv[1])
    const hear = (error) => console.log(JSON.stringify({ code: error.code, message: error.message }))
    await engine.open().then(() => engine.enqueue(null, [{ queue: 'q', payload: '1' }])).then(hear, hear)`
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const args = ['--input-type=module', '-e', script, file]
  const { stdout, stderr } = spawnSync(process.execPath, args, { ...user, encoding: 'utf8' })
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

describe('a store that may not be written', () => {
  it('is refused when the file is read-only', async () => {
    const file = newFile()
    await makeStore(file)
    chmodSync(file, 0o444)
    chmodSync(join(file, '..'), 0o755)
    expect(openAsUser(file)).toMatchObject({ code: 'PW_STORE_READONLY', message: expect.stringContaining(file) })
    chmodSync(file, 0o600)
    await makeStore(file)
  })

  it('is refused when the folder is read-only', async () => {
    const file = newFile()
    await makeStore(file)
    chmodSync(file, 0o666)
    chmodSync(join(file, '..'), 0o555)
    expect(openAsUser(file)).toMatchObject({ code: 'PW_STORE_READONLY' })
    expect(openAsUser(`${file}-new`)).toMatchObject({ code: 'PW_STORE_READONLY' })
  })

  it('is refused when the file may not be read at all', async () => {
    const file = newFile()
    await makeStore(file)
    chmodSync(file, 0o000)
    chmodSync(join(file, '..'), 0o755)
    expect(openAsUser(file)).toMatchObject({ code: 'PW_STORE_READONLY' })
  })
})

describe('a store with more than one name', () => {
  const opened = async (file: string) => {
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    onTestFinished(() => engine.close())
    return engine
  }

  it('is one store through a symbolic link, and its files stand beside the file itself', async () => {
    const file = newFile()
    await makeStore(file)
    const link = join(newFolder(), 'link.db')
    symlinkSync(file, link)
    const [direct, linked] = [await opened(file), await opened(link)]
    await linked.enqueue(null, [task])
    expect((await direct.measure(null, true)).types).toMatchObject([{ ready: 2 }])
    expect(readdirSync(join(link, '..'))).toEqual(['link.db'])
  })

  it('is refused through a link to nowhere, and nothing is made there', async () => {
    const file = newFile()
    const link = `${file}-link`
    symlinkSync(file, link)
    await expect(opened(link)).rejects.toMatchObject({ code: 'PW_STORE_MISSING' })
    expect(readdirSync(join(file, '..'))).toEqual(['work.db-link'])
  })

  it('is refused under a hard link, whose log would be another, and opens again without it', async () => {
    const file = newFile()
    await makeStore(file)
    const engine = await opened(file)
    linkSync(file, `${file}-hard`)
    for (const name of [`${file}-hard`, file]) await refusesUnchanged(name, 'PW_STORE_LINKED')
    await engine.enqueue(null, [task])
    rmSync(`${file}-hard`)
    expect((await (await opened(file)).measure(null, true)).types).toMatchObject([{ ready: 2 }])
  })

  it('is refused when it is mounted without its folder', async () => {
    const file = newFile()
    await makeStore(file)
    const script = `touch "$0-in" && mount --bind "$0" "$0-in" && exec "$@"`
    const open = `import(${JSON.stringify(import.meta.resolve('../../dist/engines/open.js'))})
      .then(({ engineFor }) => engineFor('sqlite:${file}-in').open())
      .then(() => console.log('opened'), (error) => console.log(error.code))`
    const wraps = [
      ['unshare', '--user', '--map-root-user', '--mount'],
      ['unshare', '--mount'],
    ]
    const allowed = wraps.find(
      ([command = '', ...args]) => spawnSync(command, [...args, 'sh', '-c', script, file, 'true']).status === 0,
    )
    if (!allowed) return console.log('This system lets nobody mount a file: that is not tried.')
    const [command = '', ...args] = allowed
    const { stdout } = spawnSync(command, [...args, 'sh', '-c', script, file, process.execPath, '-e', open])
    expect(stdout.toString()).toBe('PW_STORE_LINKED\n')
  })
})

describe('a store that somebody writes', () => {
  it('can be opened and read all the same', async () => {
    const file = newFile()
    await makeStore(file)
    const writer = new Database(file)
    onTestFinished(() => void writer.close())
    writer.exec('begin immediate')
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    expect((await engine.measure(null, false)).types).toMatchObject([{ ready: 1 }])
    writer.exec('rollback')
    await engine.close()
  })
})

describe('a store that is not there', () => {
  it('is made, for the eyes of its owner only', async () => {
    const file = newFile()
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    onTestFinished(() => engine.close())
    await engine.enqueue(null, [task])
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777, name).toBe(0o600)
  })

  it('is not made where its folder is missing, or where nobody wants it made', async () => {
    const file = newFile()
    const inNoFolder = engineFor(`sqlite:${file}/no/such/work.db`)
    await expect(inNoFolder.open()).rejects.toMatchObject({ code: 'PW_STORE_MISSING' })
    const unmade = engineFor(`sqlite:${file}`, { create: false })
    await expect(unmade.open()).rejects.toMatchObject({ code: 'PW_STORE_MISSING' })
    expect(readdirSync(join(file, '..'))).toEqual([])
    await makeStore(file)
    await unmade.open()
    await unmade.close()
  })
})

describe('a descriptor', () => {
  it('opens the same store elsewhere', async () => {
    const engine = engineFor(`sqlite:${newFile()}`)
    await engine.open()
    onTestFinished(() => engine.close())
    await engine.enqueue(null, [task])
    const descriptor = JSON.parse(JSON.stringify(engine.descriptor()))
    const other = engineFrom(descriptor)
    await other.open()
    onTestFinished(() => other.close())
    expect((await other.select('task', {}, null)).items).toHaveLength(1)
  })

  it('is null for a store in memory, which is one for each handle', async () => {
    const [one, other] = [engineFor('sqlite::memory:'), engineFor('sqlite::memory:')]
    for (const engine of [one, other]) await engine.open()
    onTestFinished(() => Promise.all([one.close(), other.close()]).then(() => {}))
    await one.enqueue(null, [task])
    expect((await other.select('task', {}, null)).items).toEqual([])
    expect(one.descriptor()).toBeNull()
  })
})

describe('two processes on one file', () => {
  const claimer = (file: string): Promise<string[]> => {
    const from = new URL('../../dist/engines/open.js', import.meta.url).href
    const script = `import { engineFor } from '${from}'
      const engine = engineFor('sqlite:' + process.argv[1])
      await engine.open()
      const ids = []
      while (ids.length < 1000) {
        const wants = [{ queue: 'q', types: null, max: 1 + (ids.length % 7) }]
        const { deliveries } = await engine.claim({ worker: 'w' + process.pid, requestId: null, wants })
        ids.push(...deliveries.map((delivery) => delivery.id))
        if (deliveries.length === 0) break
      }
      await engine.close()
      console.log(JSON.stringify(ids))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, file], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return new Promise((resolve, reject) => {
      let [out, err] = ['', '']
      child.stdout.on('data', (text) => (out += text))
      child.stderr.on('data', (text) => (err += text))
      child.once('close', (code) => (code === 0 ? resolve(JSON.parse(out)) : reject(new Error(`${code}: ${err}`))))
    })
  }

  it('get 1000 tasks each, 2000 different ones, none twice (case 2)', async () => {
    const file = newFile()
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    onTestFinished(() => engine.close())
    for (let n = 0; n < 3; n++)
      await engine.enqueue(
        null,
        Array.from({ length: 700 }, () => task),
      )
    const [one, other] = await Promise.all([claimer(file), claimer(file)])
    expect(one.length).toBeGreaterThanOrEqual(1000)
    expect(other.length).toBeGreaterThanOrEqual(1000)
    expect(new Set([...one, ...other]).size).toBe(one.length + other.length)
    const [figures] = (await engine.measure(null, true)).types
    expect(figures).toMatchObject({ leased: one.length + other.length, deliveries: one.length + other.length })
  })
})
