// Where the figures come from: processor, versions, and how long the disk takes to make a small write durable.
import { closeSync, fdatasync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { quantile } from './figures.js'

const syncs = 60
const memoryFileSystem = 0x01021994

/** Milliseconds of `fdatasync` after 4 KiB were appended to a file in the folder: median and 99th percentile. */
async function syncLatency(/** @type {string} */ folder) {
  const file = join(folder, 'sync-probe')
  const fd = openSync(file, 'w')
  const page = Buffer.alloc(4096, 1)
  /** @type {number[]} */
  const tookMs = []
  for (let i = 0; i < syncs; i++) {
    writeSync(fd, page)
    const start = performance.now()
    await new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve(undefined))))
    tookMs.push(performance.now() - start)
  }
  closeSync(fd)
  rmSync(file)
  return { syncP50Ms: quantile(tookMs, 0.5), syncP99Ms: quantile(tookMs, 0.99) }
}

/** The facts printed beside the figures. */
export async function machineFacts(/** @type {string} */ folder) {
  const db = new Database(':memory:')
  const sqlite = db.prepare('select sqlite_version()').pluck().get()
  db.close()
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    load1: loadavg()[0] ?? 0,
    node: process.version,
    sqlite: String(sqlite),
    platform: `${process.platform} ${process.arch}`,
    folder,
    inMemory: statfsSync(folder).type === memoryFileSystem,
    ...(await syncLatency(folder)),
  }
}
