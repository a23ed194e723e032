// The bugs that the simulation must notice, each with the law that has to object to it.
import { both, type Planted, plant, sqlite, worker } from './plant.js'
import { ofBatches } from './planted-batches.js'

const acked = 'claimedAt from piecework_task\n    where id = ? and fence = ? and nonce = ?`'
const held = '$' + '{held} from piecework_task where id = ? and fence = ? and nonce = ?'

/** Bugs of receipts, numbers and leases. */
const ofReceipts = [
  plant(
    'newest receipt',
    'the fence is not compared',
    sqlite('statements.js', acked, 'claimedAt from piecework_task\n    where id = ? and (? or true) and (? or true)`'),
    sqlite(
      'statements.js',
      `${held} and state = 4`,
      `${held.replaceAll(/and (fence|nonce) = \?/g, 'and (? or true)')} and state = 4`,
    ),
  ),
  plant(
    'lapsed receipt',
    'a late ack is refused',
    sqlite('statements.js', acked, `${acked.slice(0, -1)} and state = 4\``),
  ),
  plant(
    'numbers',
    'a fence repeats',
    sqlite('claim.js', 'Math.max(lastFence + 1, s.nowUs)', 'id'),
    sqlite('statements.js', 'fence = max(fence + 1, ?)', 'fence = id + 0 * ?'),
  ),
  plant(
    'numbers',
    'ids are used again',
    sqlite(
      'session.js',
      'const first = Math.max(this.lastId + 1, Math.min(this.nowUs, this.numbersToUs));',
      "const first = this.db.prepare('select coalesce(max(id), 0) + 1 as n from piecework_task').get().n;",
    ),
  ),
  plant(
    'one holder',
    'a lease ends before its time',
    sqlite(
      'statements.js',
      'where state = 4 and wakeAt <= ? order by wakeAt limit ?',
      'where state = 4 and wakeAt <= ? + 300 order by wakeAt limit ?',
    ),
  ),
  plant(
    'one holder',
    'a handler starts although its lease is over',
    worker('crew.js', 'if (now >= run.endsAt || run.reason)', 'if (run.reason)'),
  ),
  plant(
    'kept lease',
    'the heartbeat extends nothing',
    worker('pulse.js', 'if (due.length > 0)', 'if (due.length > 1000)'),
  ),
]

/** Bugs of budgets, deaths and suspects. */
const ofBudgets = [
  plant(
    'one budget',
    'deliveriesMax is off by one',
    both('endings.js', 'row.spent >= deliveriesMax', 'row.spent > deliveriesMax'),
  ),
  plant(
    'one budget',
    'a free release is counted',
    both('endings.js', "const spent = by === 'counted' ? row.spent : row.spent - 1;", 'const spent = row.spent;'),
  ),
  plant(
    'one budget',
    'a lease that ends costs no delivery',
    both(
      'endings.js',
      's.change(row, { state: code.ready, wakeAt: null, worker, deaths: row.deaths });',
      's.change(row, { spent: row.spent - 1, state: code.ready, wakeAt: null, worker, deaths: row.deaths });',
    ),
  ),
  plant(
    'one budget',
    'a death is not charged',
    both(
      'endings.js',
      'if (exhausted(s, row))\n        return die(s, event,',
      "if (event === 'expire' && exhausted(s, row))\n        return die(s, event,",
    ),
  ),
  plant(
    'suspects',
    'a suspect is handed out with others',
    sqlite('claim.js', 'return Math.max(1, ahead);', 'return max;'),
  ),
  plant(
    'suspects',
    'a suspect runs beside others',
    worker(
      'crew.js',
      'if (task.deaths >= suspectDeaths && !this.#suspect && !this.#closed)',
      'if (this.#closed === null)',
    ),
  ),
]

/** Bugs of places, keys and names. */
const ofOrder = [
  plant(
    'places',
    'the last comes first',
    sqlite(
      'statements.js',
      'where type = ? and state = 3 order by place, id limit ?`;',
      'where type = ? and state = 3 order by place desc, id desc limit ?`;',
    ),
  ),
  plant(
    'keeps place',
    'a release loses its place',
    both(
      'endings.js',
      's.change(row, { state: code.ready, wakeAt: null, ...kept });',
      's.change(row, { state: code.ready, place: row.place + 1, wakeAt: null, ...kept });',
    ),
  ),
  plant(
    'keys',
    "a key's width is ignored",
    sqlite('session.js', 'const { width } = this.catalog.policyOf(queue).perKey;', 'const width = 1000;'),
  ),
  plant(
    'limit',
    'a limit forgets what its own transaction has leased',
    sqlite('limits.js', "s.added(type, 'leased')", '0'),
  ),
  plant('limit', 'a full limit lets one more through', {
    file: 'task/limiter.js',
    text: 'Math.max(0, ceiling - leased)',
    by: 'Math.max(1, ceiling - leased)',
  }),
  plant('dedup', 'the dedup window is ignored', both('endings.js', 'dedupWindowMs > 0 ?', 'dedupWindowMs < 0 ?')),
]

/** Bugs of figures, commits and lost answers. */
const ofAnswers = [
  plant(
    'counters',
    'a counter is counted twice',
    sqlite(
      'session.js',
      'this.q.count.run(...deltas, type);',
      '{ this.q.count.run(...deltas, type); this.q.count.run(...deltas, type); }',
    ),
  ),
  plant(
    'counters',
    'an expiry is not counted',
    both(
      'endings.js',
      "s.count(event, row.type, 'leased', 'ready');",
      "s.count(event === 'expire' ? 'release' : event, row.type, 'leased', 'ready');",
    ),
  ),
  plant(
    'synced',
    'an ack is reported before its sync',
    sqlite('turn.js', 'this.syncer\n            .after()', 'Promise.resolve()'),
  ),
  plant(
    'synced',
    'a sync that had begun counts for what came later',
    sqlite('sync.js', 'const served = waiting;\n        waiting = [];', ''),
    sqlite(
      'sync.js',
      'running = false;\n            if (error)',
      'running = false;\n            const served = waiting.splice(0);\n            if (error)',
    ),
  ),
  plant(
    'repeats',
    'a flush sent again is settled again',
    sqlite('answer.js', 'if (kept)\n        return answerTo(print, kept.answer);', ''),
  ),
  plant(
    'repeats',
    'a claim sent again takes other tasks',
    sqlite('claim.js', 'if (again && again.deliveries.length > 0)', 'if (again === null)'),
  ),
  plant(
    'repeats',
    'a claim whose answer was lost is forgotten until its leases end',
    worker('fetch.js', 'String(this.#requests)', 'String(this.#requests++)'),
  ),
  plant(
    'repeats',
    'a verdict whose answer was lost is not sent again',
    worker('settle.js', 'if (this.#giveUp ||', 'if (error.retryable ||'),
  ),
]

/** Bugs of the death of processes. */
const ofDeaths = [
  plant(
    'back in a second',
    'nobody looks for the dead',
    sqlite('workers.js', 'if (row.proof === null)', 'if (row.proof !== null)'),
  ),
  plant(
    'back in a second',
    'a death is believed after five seconds',
    sqlite(
      'engine.js',
      'findDead(workers, session.clock.bootId, liveness);',
      'findDead(workers, session.clock.bootId, liveness).filter((row) => session.now - row.aliveAt > 5000);',
    ),
  ),
]

/** Bugs of the end of things, and of time. */
const ofEnds = [
  plant(
    'stops',
    'a prefetched task is not given back',
    worker('crew.js', "settler.add(run, { receipt: run.receipt, do: 'release', by: 'unstarted' });", 'void settler;'),
  ),
  plant(
    'kept',
    'a task is accepted and not stored',
    sqlite('enqueue.js', 's.q.insert.run(', 'if (id % 5 !== 0) s.q.insert.run('),
  ),
  plant(
    'kept',
    'an ack is answered and the task stays',
    sqlite(
      'settle.js',
      "s.q.remove.run(id);\n    s.count('ack'",
      "if (row.number < 2) s.q.remove.run(id);\n    s.count('ack'",
    ),
  ),
  plant(
    'finish',
    'what waits behind its key is forgotten',
    sqlite('settle.js', 's.promoteLanes();\n    return outcomes;', 'return outcomes;'),
  ),
  plant('clock', 'two sweeps take the same sleep in', sqlite('session.js', 'row.asleepMs += sleptMs;', '')),
  plant(
    'clock',
    'the wall clock moves leases',
    sqlite('time.js', 'Math.floor(clock.monotonicMs() * 1000) + row.offsetUs;', 'Math.floor(clock.wallMs() * 1000);'),
  ),
]

/** Bugs of schedules. */
const ofSchedules = [
  plant(
    'slots',
    'the slot that was enqueued is not kept',
    sqlite('schedules.js', 'setSlot.run(nextAt, lastAt, row', 'setSlot.run(nextAt, row.lastAt, row'),
  ),
  plant(
    'slots',
    'a schedule that is set again begins anew',
    both('schedules.js', 'const lastAt = before?.lastAt ?? null;', 'const lastAt = null;'),
    both('schedules.js', 'changed: before?.settings !== row.settings', 'changed: true'),
  ),
  plant(
    'slots',
    'a slot goes back with the wall clock',
    both('schedules.js', 'dueAtInstant(begun, row.lastAt, now);', 'dueAtInstant(begun, null, now);'),
    both('../task/schedule.js', 'const nextAt = slotAfter(begun, newest);', 'const nextAt = slotAfter(begun, now);'),
  ),
  plant(
    'slots',
    'of all that was missed only the newest comes back',
    both('../task/schedule.js', "begun.missed === 'all' ? missedSlotsMax : 1", '1'),
  ),
  plant('slots', 'no sweep looks for slots', sqlite('sweep.js', 'slots: slotMs === 0', 'slots: false')),
  plant(
    'slots',
    'the slot advances in another commit than its task',
    sqlite(
      'schedules.js',
      's.q.setSlot.run(nextAt, lastAt, row.queue, row.name);',
      'advanceLater(s, row, nextAt, lastAt);',
    ),
    sqlite(
      'schedules.js',
      'function fire(s, rows, max) {',
      `const later = [];
function advanceLater(s, row, nextAt, lastAt) {
    later.push([nextAt, lastAt, row.queue, row.name]);
    if (later.length > 1) s.q.setSlot.run(...later.shift());
}
function fire(s, rows, max) {`,
    ),
  ),
]

export const planted: readonly Planted[] = [
  ...[...ofReceipts, ...ofBudgets, ...ofOrder, ...ofAnswers, ...ofDeaths, ...ofEnds, ...ofSchedules],
  ...ofBatches,
]
