// Every statement that writes tasks, prepared once for each connection.
import type { Database, Statement } from 'better-sqlite3'

/** What the settling statements need to know of a task. */
const held = `id, queue, type, state, place, key, slot, batch, dedupKey, number, spent, releases, deaths, flags, fence,
  worker, claimedAt, priority, moveTo`

/** Parameters stand in the order of the text; what changes comes first, what it is found by comes last. */
export const sql = {
  begin: 'begin immediate',
  commit: 'commit',
  rollback: 'rollback',
  savepoint: 'savepoint piecework',
  undo: 'rollback to piecework',
  release: 'release piecework',
  readBegin: 'begin',
  store: 'select format, bootId, offsetUs, asleepMs, lostAt, reservedUs, lastId, settings from piecework_store',
  setStore: 'update piecework_store set lastId = ?, reservedUs = ?, settings = ?',
  setAsleep: 'update piecework_store set offsetUs = ?, asleepMs = ?',
  setLost: 'update piecework_store set lostAt = ?',
  lengthenLeases: 'update piecework_task set wakeAt = max(wakeAt + ?, ?) where state = 4',

  queueByName: 'select id, name, createdAt, pausedAt, code, operator from piecework_queue where name = ?',
  queues: 'select id, name, createdAt, pausedAt, code, operator from piecework_queue order by name',
  addQueue: 'insert into piecework_queue (name, createdAt) values (?, ?)',
  setQueue: 'update piecework_queue set pausedAt = ?, code = ?, operator = ? where id = ?',
  types: 'select id, queue, name, pausedAt, mixed from piecework_type',
  addType: 'insert into piecework_type (queue, name) values (?, ?)',
  routes: 'select type, goesTo from piecework_route',
  putRoute: 'insert or replace into piecework_route (type, goesTo) values (?, ?)',
  dropRoute: 'delete from piecework_route where type = ?',
  mixType: 'update piecework_type set mixed = 1 where id = ?',
  setType: 'update piecework_type set pausedAt = ? where id = ?',
  count: `update piecework_type set
    scheduled = scheduled + ?, waiting = waiting + ?, ready = ready + ?, leased = leased + ?, dead = dead + ?,
    enqueued = enqueued + ?, deliveries = deliveries + ?, done = done + ?, failures = failures + ?,
    releases = releases + ?, expiries = expiries + ?, deaths = deaths + ?, cancelled = cancelled + ?,
    redrives = redrives + ?, discarded = discarded + ?, moved = moved + ?, stale = stale + ?
    where id = ?`,
  figures: 'select * from piecework_type',
  figuresOf: 'select * from piecework_type where queue = ?',
  readyOf: 'select ready, pausedAt from piecework_type where id = ?',

  insert: `insert into piecework_task (id, queue, type, state, place, dueAt, wakeAt, wallAt, deadlineAt, key, weight,
    priority, batch, dedupKey, flags, enqueuedAt, headers, payload)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  stateOf: 'select state from piecework_task where id = ?',

  // Reading the heads and then leasing them costs x0.88 of a drain with one `update … returning` (0002).
  lease: `update piecework_task set state = 4, wakeAt = ?, number = number + 1, spent = spent + 1,
    fence = max(fence + 1, ?), nonce = ?, worker = ?, claimedAt = ? where id in (select value from json_each(?))`,
  // The common case, where nothing hangs on the task but its row: half of what `delete … returning` costs (0002).
  ackPlain: `delete from piecework_task where id = ? and fence = ? and nonce = ? and type = ? and state = 4
    and number = 1 and key is null and batch is null and dedupKey is null and flags & 8 = 0`,
  acked: `select type, state, number, key, batch, moveTo, dedupKey, flags, claimedAt from piecework_task
    where id = ? and fence = ? and nonce = ?`,
  held: `select ${held} from piecework_task where id = ? and fence = ? and nonce = ? and state = 4`,
  holding: `select ${held} from piecework_task where id = ? and fence = ? and nonce = ?`,
  heldBy: `select ${held} from piecework_task indexed by piecework_task_leased where state = 4 and worker = ?`,
  addDead: `insert into piecework_dead (task, type, reason, code, error, fingerprint, deadAt)
    values (?, ?, ?, ?, ?, ?, ?)`,
  dropDead: 'delete from piecework_dead where task = ?',
  remove: 'delete from piecework_task where id = ?',
  addHistory: `insert or replace into piecework_history
    (task, number, fence, outcome, code, error, worker, startedAt, endedAt)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  dropLapse: `delete from piecework_history where task = ? and number = ? and outcome = 'expired'`,
  dropHistory: 'delete from piecework_history where task = ?',

  addResult: `insert or replace into piecework_result (task, type, outcome, result, endedAt, endsAt)
    values (?, ?, ?, ?, ?, ?)`,
  pruneResults: 'delete from piecework_result where endsAt <= ?',

  // A task that was moved has its marks in the queue where they were made.
  addEffect: `insert into piecework_effect (effectKey, queue, task, endsAt) select ?, ?, ?, ?
    where not exists (select 1 from piecework_effect where effectKey = ? and task = ?) on conflict do nothing`,
  // Before the task's row and its history are gone.
  addRedelivered: `insert into piecework_redelivered
      (task, type, key, deliveries, workers, enqueuedAt, startedAt, ackedAt)
    select id, type, key, number, (select json_group_array(name) from (select name from (
        select worker as name, number as n from piecework_history where task = task.id and worker is not null union all
        select name, task.number from piecework_worker worker where worker.id = task.worker)
      group by name order by min(n))), enqueuedAt, claimedAt, ? from piecework_task task where id = ?`,
  pruneRedelivered: 'delete from piecework_redelivered where ackedAt <= ?',

  pruneEffects: `delete from piecework_effect where endsAt <= ?
    and not exists (select 1 from piecework_task where piecework_task.id = piecework_effect.task)`,
  // Of a task that is still there: looked at again some time later, so that each look is short.
  keepEffects: 'update piecework_effect set endsAt = ? where endsAt <= ?',

  dueTasks: `select ${held} from piecework_task indexed by piecework_task_scheduled
    where state = 1 and wakeAt <= ? order by wakeAt, id limit ?`,
  wallTasks: 'select id, wallAt from piecework_task where state = 1 and wallAt is not null',
  wallOf: 'select wallAt from piecework_task where id = ?',
  setWake: 'update piecework_task set wakeAt = ? where id = ?',
  endedLeases: `select ${held} from piecework_task indexed by piecework_task_leased
    where state = 4 and wakeAt <= ? order by wakeAt limit ?`,
  pastDeadline: `select ${held} from piecework_task indexed by piecework_task_deadline
    where deadlineAt is not null and state < 4 and deadlineAt <= ? order by deadlineAt limit ?`,
  oldestHead: `select dueAt as at from piecework_task indexed by piecework_task_ready
    where type = ? and state = 3 order by place, id limit 1`,
  oldestOfAll:
    'select min(dueAt) as at from piecework_task indexed by piecework_task_ready where type = ? and state = 3',
  oldestLeases: `select type, min(claimedAt) as at from piecework_task indexed by piecework_task_leased
    where state = 4 group by type`,
  nextDue: 'select min(wakeAt) as at from piecework_task indexed by piecework_task_scheduled where state = 1',
  nextEnd: 'select min(wakeAt) as at from piecework_task indexed by piecework_task_leased where state = 4',
  // The next slot of a schedule rides along, by the wall clock: to know of it costs no statement of its own.
  nextDeadline: `select min(deadlineAt) as at,
    (select min(nextAt) from piecework_schedule where nextAt is not null) as slotAt
    from piecework_task indexed by piecework_task_deadline where deadlineAt is not null and state < 4`,

  suspect: `select id, place from piecework_task indexed by piecework_task_suspect
    where type = ? and state = 3 and deaths >= 2 order by place, id limit 1`,
  aheadOf: `select count(*) as n from (select 1 from piecework_task indexed by piecework_task_ready
    where type = ? and state = 3 and (place < ? or (place = ? and id < ?)) limit ?)`,
  slots: `select count(*) as n from (select 1 from piecework_task indexed by piecework_task_slot
    where queue = ? and key = ? and slot = 1 limit ?)`,
  promote: `update piecework_task set state = 3, slot = 1 where id in (
    select id from piecework_task indexed by piecework_task_waiting
    where queue = ? and key = ? and state = 2 order by dueAt, id limit ?)
    returning id, type`,
  // Reads the whole queue where nothing has a key; asked only when the order within keys would change.
  keyedOf: 'select 1 from piecework_task where queue = ? and key is not null and state < 5 limit 1',
  firstWaiting: `select min(dueAt) as at from piecework_task indexed by piecework_task_waiting
    where queue = ? and key = ? and state = 2`,
  edit: 'update piecework_task set payload = ? where id = ?',
  replace: 'update piecework_task set payload = ?, headers = ?, priority = ?, weight = ? where id = ?',
  taskById: `select ${held} from piecework_task where id = ?`,
  moveDead: 'update piecework_dead set type = ? where task = ?',

  takeDedup: 'insert into piecework_dedup (queue, dedupKey, task) values (?, ?, ?) on conflict do nothing',
  dedupOf: 'select task, endsAt from piecework_dedup where queue = ? and dedupKey = ?',
  retakeDedup: 'update piecework_dedup set task = ?, endsAt = null where queue = ? and dedupKey = ?',
  endDedup: 'update piecework_dedup set endsAt = ? where queue = ? and dedupKey = ? and task = ?',
  dropDedup: 'delete from piecework_dedup where queue = ? and dedupKey = ? and task = ?',
  pruneDedup: 'delete from piecework_dedup where endsAt is not null and endsAt <= ?',

  batchByName: 'select id, name, sealedAt from piecework_batch where name = ?',
  batchById: 'select name, followUp from piecework_batch where id = ?',
  batchWhole: 'select * from piecework_batch where name = ?',
  addBatch: 'insert into piecework_batch (name, createdAt) values (?, ?)',
  setBatch: 'update piecework_batch set sealedAt = ?, info = ? where id = ?',
  countBatch: `update piecework_batch set total = total + ?, done = done + ?, dead = dead + ?,
    cancelled = cancelled + ?, retries = retries + ?, returned = returned + ?, forwarded = forwarded + ? where id = ?`,
  finishBatch: `update piecework_batch set finishedAt = ? where id = ? and finishedAt is null and sealedAt is not null
    and total = done + dead + cancelled returning followUp`,
  setFollowUp: 'update piecework_batch set followUp = ? where id = ?',
  followUps: 'select followUp from piecework_batch where finishedAt is null and followUp is not null',
  forgetBatch: 'delete from piecework_batch where id = ?',
  forgetMembers: 'delete from piecework_member where batch = ?',
  leaveBatch: 'update piecework_task set batch = null where batch = ?',
  addMember: 'insert into piecework_member (batch, identity, task) values (?, ?, ?) on conflict do nothing',
  setMember: 'update piecework_member set task = ? where batch = ? and identity = ?',
  memberOf: 'select task from piecework_member where batch = ? and identity = ?',

  workerByName: 'select id from piecework_worker where name = ?',
  workerById: 'select name from piecework_worker where id = ?',
  workers: 'select * from piecework_worker order by name',
  join: `insert into piecework_worker (name, host, pid, bootId, proof, queues, concurrency, busy, prefetched, aliveAt)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (name) do update set host = excluded.host, pid = excluded.pid, bootId = excluded.bootId,
    proof = excluded.proof, queues = excluded.queues, concurrency = excluded.concurrency, busy = excluded.busy,
    prefetched = excluded.prefetched, aliveAt = excluded.aliveAt`,
  workerSeen: 'select id, busy, prefetched, aliveAt from piecework_worker where name = ?',
  beat: 'update piecework_worker set busy = ?, prefetched = ?, aliveAt = ? where name = ?',
  leave: 'delete from piecework_worker where id = ?',
  pruneWorkers: `delete from piecework_worker where aliveAt < ? and id not in
    (select worker from piecework_task indexed by piecework_task_leased where state = 4 and worker is not null)`,
  proofHeld: 'select 1 from piecework_worker where proof = ? limit 1',
  cancelsOf: `select id, fence, nonce, type from piecework_task indexed by piecework_task_leased
    where state = 4 and worker = ? and flags & 1`,

  schedules: `select schedule.* from piecework_schedule schedule join piecework_queue queue on queue.id = schedule.queue
    order by queue.name, schedule.name`,
  scheduleOf: 'select * from piecework_schedule where queue = ? and name = ?',
  putSchedule:
    'insert or replace into piecework_schedule (queue, name, settings, nextAt, lastAt) values (?, ?, ?, ?, ?)',
  dropSchedule: 'delete from piecework_schedule where queue = ? and name = ?',
  dueSchedules: `select * from piecework_schedule indexed by piecework_schedule_next
    where nextAt is not null and nextAt <= ? order by nextAt, queue, name limit ?`,
  setSlot: 'update piecework_schedule set nextAt = ?, lastAt = ? where queue = ? and name = ?',

  answerOf: 'select answer from piecework_answer where request = ? and endsAt > ?',
  addAnswer: 'insert or replace into piecework_answer (request, answer, endsAt) values (?, ?, ?)',
  prunable: `select 1 from piecework_answer where endsAt <= ? union all
    select 1 from piecework_dedup where endsAt is not null and endsAt <= ? union all
    select 1 from piecework_result where endsAt <= ? union all
    select 1 from piecework_effect where endsAt <= ? union all
    select 1 from piecework_redelivered where ackedAt <= ? limit 1`,
  pruneAnswers: 'delete from piecework_answer where endsAt <= ?',
  limits: 'select id, name, queue, settings from piecework_limit order by name, id',
  addLimit: "insert into piecework_limit (name, queue, settings, state) values (?, ?, ?, '{}')",
  setLimit: 'update piecework_limit set settings = ? where id = ?',
  dropLimit: 'delete from piecework_limit where id = ?',
  limitState: 'select state from piecework_limit where id = ?',
  setLimitState: 'update piecework_limit set state = ? where id = ?',
  leasedOf: `select coalesce(sum(leased), 0) as n from piecework_type
    where id in (select value from json_each(?))`,
  tokens: 'select * from piecework_token order by name, createdAt, id',
  addToken: `insert into piecework_token (id, name, hash, scopes, queues, createdAt, expiresAt)
    values (?, ?, ?, ?, ?, ?, ?)`,
  dropToken: 'delete from piecework_token where id = ?',
  addAudit: 'insert into piecework_audit (at, actor, action, subject, details) values (?, ?, ?, ?, ?)',
} as const

/** What a claim reads of a task, in this order: rows come as arrays, objects of 13 fields cost twice as much. */
const claimedColumns = 'id, type, number, spent, fence, key, batch, deaths, enqueuedAt, dueAt, flags, headers, payload'

/** The tasks to claim, of one or several types: one index walk a type, merged by place. */
export function headsSql(types: number): string {
  const walk = (columns: string) => `select ${columns} from piecework_task indexed by piecework_task_ready
    where type = ? and state = 3 order by place, id limit ?`
  if (types === 1) return walk(claimedColumns)
  const walks = Array.from({ length: types }, () => `select * from (${walk('id, place')})`)
  return `select ${claimedColumns} from piecework_task where id in (
    select id from (${walks.join(' union all ')}) order by place, id limit ?) order by place, id`
}

export type Statements = { readonly [Name in keyof typeof sql]: Statement<unknown[]> } & {
  heads(types: number): Statement<unknown[]>
  /** Writes a task, which its id, the last parameter, names. */
  put(set: string): Statement<unknown[]>
}

/** Prepares every statement on a connection whose tables exist; those of many shapes at the first use of each. */
export function prepareAll(db: Database): Statements {
  // A caller's own connection may answer whole numbers as bigint.
  const prepared = Object.fromEntries(
    Object.entries(sql).map(([name, text]) => [name, db.prepare(text).safeIntegers(false)]),
  )
  const heads = remembered((types: number) => db.prepare(headsSql(types)).raw(true))
  const put = remembered((set: string) => db.prepare(`update piecework_task set ${set} where id = ?`))
  return { ...prepared, heads, put } as Statements
}

function remembered<Shape>(make: (shape: Shape) => Statement<unknown[]>): (shape: Shape) => Statement<unknown[]> {
  const made = new Map<Shape, Statement<unknown[]>>()
  return (shape) => {
    const known = made.get(shape)
    if (known) return known
    const statement = make(shape)
    made.set(shape, statement)
    return statement
  }
}
