// Counts what the store and the folder say became of the items, and puts it into words.
import { existsSync, readdirSync } from 'node:fs'
import sharp from 'sharp'
import { truncated, widths } from './plan.js'

/** @typedef {import('./progress.js').Stats} Stats */
/** @typedef {ReturnType<typeof import('./plan.js').planItems>} Items */

/**
 * The figures of the batch. Lost: neither done nor dead, or said to be done without its thumbnail. Duplicate in effect:
 * a file that should not be there, be it a second thumbnail or what somebody began and nobody ended.
 * @param {Stats} stats
 * @param {Items} items
 * @param {string} folder where the thumbnails are
 */
export async function countFigures(stats, items, folder) {
  const good = items.filter((item) => item.picture !== truncated)
  const right = await Promise.all(good.map(isRight))
  const there = right.filter(Boolean).length
  const expected = new Set(good.map(({ name }) => name))
  return {
    items: items.length,
    done: stats.done,
    dead: stats.dead,
    lost: Math.max(items.length - stats.done - stats.dead, good.length - there),
    redelivered: stats.returned,
    duplicatesInEffect: readdirSync(folder).filter((file) => !expected.has(file)).length,
    ms: (stats.finishedAt ?? stats.createdAt).getTime() - stats.createdAt.getTime(),
  }
}

/** @param {Items[number]} item */
async function isRight({ output, width }) {
  if (!existsSync(output)) return false
  const { format, width: found } = await sharp(output).metadata()
  return format === 'webp' && found === width
}

/** @typedef {Awaited<ReturnType<typeof countFigures>>} Figures */

/**
 * What went otherwise than it should; empty when the show was a success.
 * @param {Figures} figures
 */
export function objections({ items, done, dead, lost, redelivered, duplicatesInEffect }) {
  return [
    lost > 0 && `${lost} items were lost`,
    duplicatesInEffect > 0 && `${duplicatesInEffect} files are there that should not be`,
    dead !== 1 && `${dead} items are dead, and it should be the truncated file alone`,
    done !== items - 1 && `${done} items are done, and it should be all but one`,
    redelivered === 0 && 'no task was taken from a killed worker: nothing was shown',
  ].filter((text) => text !== false)
}

/**
 * @param {Figures} figures
 * @param {string[]} deadLines one line for each dead letter
 * @param {{ again: boolean, url: string }} run
 */
export function words(figures, deadLines, { again, url }) {
  const { items, done, dead, lost, redelivered, duplicatesInEffect, ms } = figures
  const pictures = (items - 1) / widths.length
  const row = (/** @type {string} */ name, /** @type {number | string} */ value, /** @type {string} */ remark) =>
    `  ${name.padEnd(13)}${String(value).padStart(7)}  ${remark}`.trimEnd()
  return [
    again ? 'All of it was done before: nothing was run. The figures of that run:' : 'The pile is done:',
    '',
    row('items', items, `${pictures} pictures at ${widths.length} widths, and a truncated file`),
    row('done', done, lost === 0 ? 'their thumbnails are there, each as wide as it should be' : ''),
    row('dead', dead, deadLines.join('; ')),
    row(
      'redelivered',
      redelivered,
      redelivered > 0 ? 'held by a worker when it was killed; others did them again' : '',
    ),
    row('lost', lost, ''),
    row(
      'duplicates',
      duplicatesInEffect,
      duplicatesInEffect === 0 ? 'in effect: no file twice, none half written' : '',
    ),
    row('time', `${(ms / 1000).toFixed(1)} s`, `${Math.round((done * 1000) / ms)} items a second`),
    '',
    'Try next:',
    ...(again ? [] : ['  npm start              all is done, so nothing runs and the figures stay']),
    '  npm start -- --new     from the start; press Ctrl-C in the middle, then go on with npm start',
    `  node dist/cli/main.js dead list --url ${url}`,
  ].join('\n')
}
