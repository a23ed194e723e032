// Random histories bite: each bug planted into a copy of the engine makes them fail.
import { describe, expect, it } from 'vitest'
import { runHistories } from './histories.js'
import { type Planted, withPlanted } from './planted.js'

const planted: Planted[] = [
  {
    bug: 'ids are used again',
    file: 'session.js',
    text: 'const first = Math.max(this.lastId + 1, Math.min(this.nowUs, this.numbersToUs));',
    by: "const first = this.db.prepare('select coalesce(max(id), 0) + 1 as n from piecework_task').get().n;",
  },
  {
    bug: 'the fence is not compared',
    file: 'statements.js',
    text: 'where id = ? and fence = ? and nonce = ? and state = 4`',
    by: 'where id = ? and (fence = ? or true) and (nonce = ? or true) and state = 4`',
  },
  {
    bug: 'a lapsed ack is refused',
    file: 'statements.js',
    text: 'claimedAt from piecework_task\n    where id = ? and fence = ? and nonce = ?`',
    by: 'claimedAt from piecework_task\n    where id = ? and fence = ? and nonce = ? and state = 4`',
  },
  {
    bug: "a key's width is ignored",
    file: 'session.js',
    text: 'const { width } = this.catalog.policyOf(queue).perKey;',
    by: 'const width = 1000;',
  },
  {
    bug: 'deliveriesMax is off by one',
    file: '../endings.js',
    text: 'row.spent >= deliveriesMax',
    by: 'row.spent > deliveriesMax',
  },
  {
    bug: 'a death is not charged to the budget',
    file: '../endings.js',
    text: 'if (exhausted(s, row))\n        return die(s, event,',
    by: "if (event === 'expire' && exhausted(s, row))\n        return die(s, event,",
  },
  {
    bug: 'a task that was asked to move stays when its lease ends',
    file: 'sweep.js',
    text: "if (giveUp(s, row, 'expire') !== 'cancelled')",
    by: "if (giveUp(s, row, 'expire') === 'done')",
  },
  {
    bug: 'a moved task keeps its slot',
    file: '../acts.js',
    text: 'dedupKey, slot: 0, nonce: null',
    by: 'dedupKey, nonce: null',
  },
  {
    bug: 'the receipt of a moved task still acts',
    file: '../acts.js',
    text: 'slot: 0, nonce: null, worker: null, flags',
    by: 'slot: 0, flags',
  },
  {
    bug: 'a free release is counted',
    file: '../endings.js',
    text: "const spent = by === 'counted' ? row.spent : row.spent - 1;",
    by: 'const spent = row.spent;',
  },
  {
    bug: 'releasesMax is ignored',
    file: '../endings.js',
    text: 'if (byHandler && row.releases >=',
    by: 'if (byHandler && row.releases - 1000 >=',
  },
  {
    bug: 'an expiry is not counted',
    file: '../endings.js',
    text: "s.count(event, row.type, 'leased', 'ready');",
    by: "s.count(event === 'expire' ? 'release' : event, row.type, 'leased', 'ready');",
  },
  {
    bug: 'a release loses its place',
    file: '../endings.js',
    text: 's.change(row, { state: code.ready, wakeAt: null, ...kept });',
    by: 's.change(row, { state: code.ready, place: row.place + 1, wakeAt: null, ...kept });',
  },
  {
    bug: 'a state is not counted',
    file: '../endings.js',
    text: "s.count('release', row.type, 'leased', 'scheduled');",
    by: '',
  },
  { bug: 'a batch misses what was done', file: 'settle.js', text: "s.countBatch(row.batch, 'done');", by: '' },
  {
    bug: 'the dedup window is ignored',
    file: '../endings.js',
    text: 'dedupWindowMs > 0 ?',
    by: 'dedupWindowMs < 0 ?',
  },
  {
    bug: 'a dead task keeps its dedup key',
    file: '../endings.js',
    text: 's.freeDedup(row, null);\n    if (!hold)',
    by: '0;\n    if (!hold)',
  },
  {
    bug: 'a flush sent again is settled again',
    file: 'answer.js',
    text: 'if (kept)\n        return answerTo(print, kept.answer);',
    by: '',
  },
  {
    bug: 'a receipt whose worker died can be extended',
    file: 'settle.js',
    text: 'if (!row || row.worker === null)',
    by: 'if (!row)',
  },
  {
    bug: "a retry gives its key's slot away",
    file: '../endings.js',
    text: 'dueAt, place, nonce: null, worker: null, progress: null',
    by: 'dueAt, place, slot: 0, nonce: null, worker: null, progress: null',
  },
  {
    bug: 'a dead head does not hold its key',
    file: '../endings.js',
    text: 'const slot = hold ? row.slot : 0;',
    by: 'const slot = 0;',
  },
  {
    bug: 'a key goes by id, not by when its tasks were due',
    file: 'statements.js',
    text: 'state = 2 order by dueAt, id limit ?)',
    by: 'state = 2 order by id limit ?)',
  },
  { bug: 'redriven tasks of a key change places', file: 'amend.js', text: 'rows.reverse();', by: '' },
  {
    bug: 'a suspect is taken with others',
    file: 'claim.js',
    text: 'return Math.max(1, ahead);',
    by: 'return max;',
  },
  {
    bug: 'a cancelled task is retried',
    file: '../endings.js',
    text: "if (row.flags & cancelAsked)\n        return cancelled(s, 'retry', row);",
    by: '',
  },
  {
    bug: 'a paused type is claimed',
    file: '../names.js',
    text: 'if (row && row.pausedAt === null)',
    by: 'if (row)',
  },
  {
    bug: 'a batch is followed before it is sealed',
    file: 'statements.js',
    text: 'finishedAt is null and sealedAt is not null\n',
    by: 'finishedAt is null\n',
  },
  {
    bug: 'what follows a batch has no place in the other before it comes',
    file: 'configure.js',
    text: "s.countBatch(outer.id, 'total');",
    by: '',
  },
  {
    bug: 'the place of what never follows stays taken',
    file: 'configure.js',
    text: "if (place != null)\n        s.countBatch(place, 'cancelled');",
    by: '',
  },
  {
    bug: 'a result is kept of plain tasks only',
    file: 'settle.js',
    text: '    freed(s, ended);\n    keepEnd(s, ended, end);',
    by: '    freed(s, ended);',
  },
  {
    bug: 'who waits for a task is forgotten',
    file: 'statements.js',
    text: 'and dedupKey is null and flags & 8 = 0`',
    by: 'and dedupKey is null`',
  },
  {
    bug: 'a cancelled task is said to be done',
    file: '../endings.js',
    text: "outcome: 'cancelled', result: null",
    by: "outcome: 'done', result: null",
  },
  {
    bug: 'a replacement leaves the old payload',
    file: '../duplicate.js',
    text: 's.replace(row, { payload: task.payload',
    by: "s.replace(row, { payload: '1'",
  },
  {
    bug: 'a task that was taken over dead is still open in its batch',
    file: '../endings.js',
    text: 'batch: null,\n            progress',
    by: 'progress',
  },
  {
    bug: 'a task that was taken over dead keeps what it has spent',
    file: '../endings.js',
    text: 'spent: 0,\n            releases',
    by: 'releases',
  },
  {
    bug: 'a handle does not notice what another changed',
    file: 'catalog.js',
    text: 'if (settings === this.settings)',
    by: 'if (this.settings >= 0)',
    handles2: true,
  },
]

/** As many as the gate runs in memory; most bugs show within a few dozen. */
const runs = 400
const seed = 20_261_130

describe('a planted bug is caught', () => {
  it.each(planted)('$bug', { timeout: 120_000 }, async (bug) => {
    const { failure } = await withPlanted(bug, (engineFor) =>
      runHistories({ file: bug.handles2 === true, runs, seed, shrink: false, engineFor }),
    )
    expect(failure, `nobody noticed within ${runs} histories`).not.toBeNull()
    // A copy that cannot run at all would prove nothing.
    expect(failure).not.toMatch(/PW_STORE_FAILED|SyntaxError|TypeError|ReferenceError/)
  })

  it('and the copy itself is sound', async () => {
    const nothing = { bug: 'none', file: 'session.js', text: 'this.lastId + 1', by: 'this.lastId + 1' }
    const { failure } = await withPlanted(nothing, (engineFor) =>
      runHistories({ file: false, runs: 20, seed, shrink: false, engineFor }),
    )
    expect(failure).toBeNull()
  })
})
