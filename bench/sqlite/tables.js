// Other tables, indexes, pages and ways to count under the engine's own statements.
import { compare } from './compare.js'
import { sliceTasks, tables, variant } from './store.js'

/** @typedef {import('./store.js').Shape} Shape */

const indexes = ['scheduled', 'deadline', 'waiting', 'slot', 'batch', 'suspect']
const without = (/** @type {string[]} */ names) =>
  names.map((name) => `drop index if exists piecework_task_${name}`).join(';')

/** @type {Record<string, Shape>} */
const shapes = {
  'as is (engine)': {},
  'without partial indexes that such tasks are not in': { after: without(indexes) },
  'with the index of ready tasks only': { after: without([...indexes, 'leased']) },
  'tables not strict': { tables: tables.replaceAll(') strict;', ');') },
  'tasks without rowid': {
    tables: tables.replace(/(create table piecework_task [^;]*?)\) strict;/, '$1) strict, without rowid;'),
  },
}

/** @type {Record<string, Shape>} */
const pages = {
  'pages 4096, cache 16 MB (engine)': {},
  'pages 8192': { pragmas: ['page_size = 8192'] },
  'pages 16384': { pragmas: ['page_size = 16384'] },
  'cache 2 MB': { pragmas: ['cache_size = -2000'] },
  'cache 64 MB': { pragmas: ['cache_size = -64000'] },
  'mapped 256 MB': { pragmas: ['mmap_size = 268435456'] },
}

const all = (
  /** @type {string} */ folder,
  /** @type {Record<string, Shape>} */ shapes,
  /** @type {Shape} */ more = {},
) => Object.entries(shapes).map(([name, shape]) => variant(folder, name, { ...shape, ...more }))

export const table = (/** @type {string} */ folder) =>
  compare('Tables and indexes, 500 a commit', all(folder, shapes), { items: sliceTasks })

export function page(/** @type {string} */ folder) {
  compare('Pages, 500 a commit', all(folder, pages), { items: sliceTasks, slices: 24 })
  const deep = { backlog: 300_000 }
  compare('Pages, 500 a commit, 300 000 ready', all(folder, pages, deep), { items: sliceTasks, slices: 24 })
}

/** How the cost of a task falls with the tasks that share its commit. */
export function commit(/** @type {string} */ folder) {
  const sizes = [1, 10, 100, 1000]
  const variants = sizes.map((perCommit) => variant(folder, `${perCommit} a commit`, { perCommit }))
  compare('Tasks in one transaction', variants.reverse(), { items: sliceTasks, slices: 10 })
}
