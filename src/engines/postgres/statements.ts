// Every statement of the engine; those that change many rows take arrays, one for each column.
import { batchColumns, figureColumns } from '../ledger.js'
import { inSchema } from './schema.js'
import { visitTexts } from './visit-statements.js'

/** Unquoted names come back in lower case: each column is answered under the name it is written with. */
const named = (columns: readonly string[], of = '') =>
  columns.map((column) => `${of}${column} as "${column}"`).join(', ')

/** What changes in a task's life, in this order everywhere; a locked row is written back whole. */
export const putColumns = {
  ...{ id: 'bigint', queue: 'integer', type: 'integer', state: 'smallint', place: 'bigint', dueAt: 'bigint' },
  ...{ wakeAt: 'bigint', deadlineAt: 'bigint', spent: 'integer', releases: 'integer', deaths: 'integer' },
  ...{ nonce: 'bigint', worker: 'integer', slot: 'smallint', flags: 'smallint', dedupKey: 'text' },
  ...{ moveTo: 'integer', progress: 'text', batch: 'integer' },
} as const
const heldColumns = [...Object.keys(putColumns), ...['key', 'number', 'fence', 'claimedAt', 'priority']]
export const heldText = named(heldColumns, 'task.')
const claimed = named(
  ['id', 'type', 'number', 'spent', 'fence', 'nonce', 'key', 'batch', 'deaths', 'enqueuedAt', 'dueAt', 'place'].concat(
    ...['headers', 'payload', 'claimedAt', 'flags'],
  ),
  'task.',
)

/** `unnest` of one array for each column, the first being parameter `from`. */
const rows = (columns: Record<string, string>, from = 1) =>
  `unnest(${Object.values(columns)
    .map((type, i) => `$${from + i}::${type}[]`)
    .join(', ')}) as given(${Object.keys(columns).join(', ')})`

const insert = (table: string, columns: Record<string, string>) =>
  `insert into piecework.${table} (${Object.keys(columns).join(', ')}) select * from ${rows(columns)}`

const all = (names: readonly string[], type: string) => Object.fromEntries(names.map((name) => [name, type]))

/** The columns of a new task as enqueue gives them. */
export const newColumns = {
  ...{ queue: 'integer', type: 'integer', state: 'smallint', place: 'bigint', dueAt: 'bigint', wakeAt: 'bigint' },
  ...{ deadlineAt: 'bigint', key: 'text', weight: 'double precision', priority: 'smallint', batch: 'integer' },
  ...{ dedupKey: 'text', flags: 'smallint', enqueuedAt: 'bigint', headers: 'text', payload: 'text' },
}

/** How many tasks a claim need look at: up to the first suspect, a task with two deaths, and that one alone. */
const room = (ofTypes: string, max: string) => `room as materialized (
    select case when not exists (select from piecework.task where ${ofTypes} and state = 3 and deaths >= 2)
      then ${max}::bigint
      else (select greatest(1, (select count(*) from (select from piecework.task task
          where ${ofTypes} and state = 3 and (place, id) < (suspect.place, suspect.id) limit ${max}) ahead))
        from (select place, id from piecework.task where ${ofTypes} and state = 3 and deaths >= 2
          order by place, id limit 1) suspect) end as n)`

// `= any(array(…))` and not a join: the planner takes 10 ids for granted and walks the primary key, where a join with
// a limit it does not know made it hash the whole table.
const take = `update piecework.task task set state = 4, wakeAt = $1, number = number + 1,
    spent = spent + 1, fence = greatest(fence + 1, $2), worker = me.id, claimedAt = $3,
    nonce = ('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint
  from me where task.id = any(array(select id from numbered where suspects = 0 or n = 1))
  returning ${claimed}`
// Of what was locked, in its order, all before the first suspect, or that one alone. `room` is not enough: it counts
// tasks that others hold by now, or that lie below the mark, and as many behind the suspect took their part.
const numbered = `numbered as (select id, row_number() over () as n,
    count(*) filter (where deaths >= 2) over (rows unbounded preceding) as suspects from heads)`
const me = 'me as materialized (select id from piecework.worker where name = $4 for key share)'

const texts = {
  ...visitTexts,
  enter: `select format, settings as settings, piecework.now_us() as "nowUs" from piecework.store`,
  bumpSettings: 'update piecework.store set settings = settings + 1 returning settings',
  queues: `select ${named(['id', 'name', 'createdAt', 'pausedAt', 'code', 'operator'])} from piecework.queue
    order by name`,
  addQueues: `insert into piecework.queue (name, createdAt) select name, $2 from unnest($1::text[]) as given(name)
    order by name on conflict do nothing`,
  // Each of its own: programs may bring their policy without the right to pause or to overrule an operator.
  setCode: 'update piecework.queue set code = $2 where id = $1',
  setOperator: 'update piecework.queue set pausedAt = $2, operator = $3 where id = $1',
  // Whether this user may do what a sweep does: also enqueue what schedules say.
  sweeper: `select bool_and(has_table_privilege(pg_class.oid, 'delete')
      and (relname <> 'task' or has_table_privilege(pg_class.oid, 'insert'))) as may from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relname in ('task', 'history', 'worker', 'answer')`,
  types: `select ${named(['id', 'queue', 'name', 'pausedAt', 'mixed'])} from piecework.type`,
  addTypes: `insert into piecework.type (queue, name) select * from unnest($1::int[], $2::text[]) as given(queue, name)
    order by queue, name on conflict do nothing`,
  routes: `select ${named(['type', 'goesTo'])} from piecework.route`,
  putRoute: `insert into piecework.route (type, goesTo) values ($1, $2)
    on conflict (type) do update set goesTo = excluded.goesTo`,
  dropRoute: 'delete from piecework.route where type = $1',
  mixTypes: 'update piecework.type set mixed = 1 where id = any($1::int[]) and mixed = 0',
  setType: 'update piecework.type set pausedAt = $1 where id = $2',
  addTally: insert('tally', { type: 'integer', ...all(figureColumns, 'integer') }),
  addProgress: `${insert('progress', { batch: 'integer', ...all(batchColumns, 'integer'), at: 'bigint' })}`,
  // Rows that a transaction in flight added are folded by the next sweep: a figure is always folded + deltas.
  foldTally: `with gone as (delete from piecework.tally where ctid = any(array(
      select ctid from piecework.tally limit $1)) returning *),
    sums as (select type, count(*) as n, ${figureColumns.map((c) => `coalesce(sum(${c}), 0) as ${c}`).join(', ')}
      from gone group by type),
    folded as (update piecework.type type set ${figureColumns.map((c) => `${c} = type.${c} + sums.${c}`).join(', ')}
      from sums where type.id = sums.type)
    select coalesce(sum(n), 0) as n from sums`,
  foldProgress: `with gone as (delete from piecework.progress where ctid = any(array(
      select ctid from piecework.progress limit $1)) returning *),
    sums as (select batch, count(*) as n, max(at) as at,
      ${batchColumns.map((c) => `coalesce(sum(${c}), 0) as ${c}`).join(', ')} from gone group by batch),
    folded as (update piecework.batch batch set movedAt = greatest(batch.movedAt, sums.at),
      ${batchColumns.map((c) => `${c} = batch.${c} + sums.${c}`).join(', ')} from sums where batch.id = sums.batch)
    select coalesce(sum(n), 0) as n from sums`,

  takeIds: `select nextval('piecework.task_id') as id from generate_series(1, $1::int)`,
  insert: `insert into piecework.task (${Object.keys(newColumns).join(', ')})
    select * from ${rows(newColumns)} returning id`,
  insertAs: insert('task', { id: 'bigint', ...newColumns }),
  statesOf: 'select id, state from piecework.task where id = any($1::bigint[])',

  ack: `delete from piecework.task task
    using unnest($1::bigint[], $2::bigint[], $3::bigint[]) as given(id, fence, nonce)
    where task.id = given.id and task.fence = given.fence and task.nonce = given.nonce
    returning task.id,
      ${named(['queue', 'type', 'state', 'number', 'key', 'batch', 'dedupKey', 'claimedAt', 'moveTo'], 'task.')},
      ${named(['flags', 'worker', 'enqueuedAt'], 'task.')}`,
  // Nobody ever waits for a task's row in here: whoever finds one taken comes again, so that no circle can close.
  lock: `select ${heldText} from piecework.task task where id = any($1::bigint[]) order by id for update skip locked`,
  lockWaiting: `select ${heldText} from piecework.task task where id = any($1::bigint[]) order by id for update`,
  standing: `select id from piecework.task where id = any($1::bigint[]) order by id`,
  heldBy: `select ${heldText} from piecework.task task where state = 4 and worker = $1 order by wakeAt, id
    for update skip locked`,
  stillHeldBy: 'select from piecework.task where state = 4 and worker = $1 limit 1',
  put: `update piecework.task task set ${Object.keys(putColumns)
    .slice(1)
    .map((c) => `${c} = given.${c}`)
    .join(', ')} from ${rows(putColumns)} where task.id = given.id`,
  remove: `with history as (delete from piecework.history where task = any($1::bigint[])),
    dead as (delete from piecework.dead where task = any($1::bigint[]))
    delete from piecework.task where id = any($1::bigint[])`,
  addDead: insert('dead', {
    ...{ task: 'bigint', type: 'integer', reason: 'text', code: 'text', error: 'text', fingerprint: 'text' },
    deadAt: 'bigint',
  }),
  dropDead: 'delete from piecework.dead where task = any($1::bigint[])',
  addHistory: `${insert('history', {
    ...{ task: 'bigint', number: 'integer', fence: 'bigint', outcome: 'text', code: 'text', error: 'text' },
    ...{ worker: 'text', startedAt: 'bigint', endedAt: 'bigint' },
  })} on conflict (task, number, outcome) do update set fence = excluded.fence, code = excluded.code,
    error = excluded.error, worker = excluded.worker, startedAt = excluded.startedAt, endedAt = excluded.endedAt`,
  dropLapses: `delete from piecework.history history using unnest($1::bigint[], $2::int[]) as given(task, number)
    where history.task = given.task and history.number = given.number and outcome = 'expired'`,
  dropHistory: 'delete from piecework.history where task = any($1::bigint[])',
  edit: 'update piecework.task set payload = $1::text where id = $2::bigint',
  replace: `update piecework.task set payload = $1::text, headers = $2::text, priority = $3::smallint,
    weight = $4::double precision where id = $5::bigint`,
  moveDead: 'update piecework.dead set type = $1::int where task = $2::bigint',

  addResults: `${insert('result', {
    ...{ task: 'bigint', type: 'integer', outcome: 'text', result: 'text', endedAt: 'bigint', endsAt: 'bigint' },
  })} on conflict (task) do update set type = excluded.type, outcome = excluded.outcome, result = excluded.result,
    endedAt = excluded.endedAt, endsAt = excluded.endsAt`,
  pruneResults: `delete from piecework.result where task in (
    select task from piecework.result where endsAt <= $1 limit 10000 for update skip locked)`,

  dueTasks: `select ${heldText} from piecework.task task where state = 1 and wakeAt <= $1 order by wakeAt, id limit $2
    for update skip locked`,
  endedLeases: `select ${heldText} from piecework.task task where state = 4 and wakeAt <= $1
    order by wakeAt, id limit $2 for update skip locked`,
  pastDeadline: `select ${heldText} from piecework.task task
    where deadlineAt is not null and state < 4 and deadlineAt <= $1 order by deadlineAt, id limit $2
    for update skip locked`,
  // The lower bounds keep the look off the dead entries that an old snapshot holds in the index.
  instants: `select (select min(wakeAt) from piecework.task where state = 1 and wakeAt >= $1) as due,
    (select min(wakeAt) from piecework.task where state = 4 and wakeAt >= $2) as ending,
    (select min(deadlineAt) from piecework.task where deadlineAt is not null and state < 4) as deadline,
    (select min(nextAt) from piecework.schedule where nextAt is not null) as slot`,
  lengthenLeases: 'update piecework.task set wakeAt = $1 where state = 4 and wakeAt < $1',

  claim: `with ${me}, ${room('type = ($5::int[])[1]', '$7')},
    heads as materialized (select id, deaths from piecework.task where type = ($5::int[])[1] and state = 3
      and place >= ($6::bigint[])[1] order by place, id limit (select n from room) for update skip locked),
    ${numbered} ${take}`,
  // Heads are chosen without locks first: locking up to the maximum of every type would hide rows nobody takes.
  claimMany: `with ${me}, ${room('type = any($5::int[])', '$7')},
    found as materialized (select head.id, head.place
      from unnest($5::int[], $6::bigint[]) as want(type, mark), lateral (select id, place from piecework.task task
        where task.type = want.type and state = 3 and task.place >= want.mark
          order by place, id limit $7::bigint + 32) head
      order by head.place, head.id limit $7::bigint + 32),
    heads as materialized (select task.id, task.deaths from found join piecework.task task on task.id = found.id
      where task.state = 3
      order by found.place, found.id limit (select n from room) for update of task skip locked),
    ${numbered} ${take}`,
  claimedAgain: `select ${claimed} from piecework.task task where id = any($1::bigint[]) and state = 4`,
  // Which of these queues have ready tasks, and when the next one is due: all that those who wait ask together.
  poll: `select format, settings, piecework.now_us() as "nowUs",
      (select min(wakeAt) from piecework.task where state = 1) as due,
      (select min(wakeAt) from piecework.task where state = 4) as ending,
      array(select name from piecework.queue queue where name = any($1) and exists (select from piecework.type type
        where type.queue = queue.id and exists (select from piecework.task task
          where task.type = type.id and task.state = 3))) as ready
    from piecework.store`,

  laneNotes: 'select queue, key from piecework.lane group by queue, key limit $1',
  addLanes: insert('lane', { queue: 'integer', key: 'text' }),
  // In the order of the numbers locked: two promoters that meet do so at the first one.
  lockLanes: `select pg_advisory_xact_lock($3, h) from (select distinct hashtext(queue || ' ' || key) as h
    from unnest($1::int[], $2::text[]) as given(queue, key) order by 1) lanes`,
  takeLanes: `delete from piecework.lane lane using unnest($1::int[], $2::text[]) as given(queue, key)
    where lane.queue = given.queue and lane.key = given.key`,
  promote: `with free as (select queue, key, width - (select count(*) from (select from piecework.task task
        where task.queue = given.queue and task.key = given.key and slot = 1 limit width) taken) as n
      from unnest($1::int[], $2::text[], $3::int[]) as given(queue, key, width)),
    heads as materialized (select head.id from free, lateral (select id from piecework.task task
      where task.queue = free.queue and task.key = free.key and state = 2 order by dueAt, id
      limit greatest(free.n, 0)) head)
    update piecework.task set state = 3, slot = 1 where id = any(array(select id from heads)) and state = 2
    returning id, type`,
  keyedOf: `select 1 from piecework.task where queue = $1 and key is not null and state < 5 limit 1`,
  firstWaiting: `select min(dueAt) as at from piecework.task where queue = $1 and key = $2 and state = 2`,

  takeDedups: `insert into piecework.dedup (queue, dedupKey, task)
    select * from unnest($1::int[], $2::text[], $3::bigint[]) as given(queue, dedupKey, task) order by queue, dedupKey
    on conflict (queue, dedupKey) do update set task = excluded.task, endsAt = null where dedup.endsAt <= $4::bigint
    returning task`,
  dedupsOf: `select dedup.queue, dedup.dedupKey as "dedupKey", dedup.task from piecework.dedup dedup
    join unnest($1::int[], $2::text[]) as given(queue, dedupKey) using (queue, dedupKey)`,
  dedupsHeld: `select dedup.queue, dedup.dedupKey as "dedupKey", dedup.task from piecework.dedup dedup
    join unnest($1::int[], $2::text[]) as given(queue, dedupKey) using (queue, dedupKey)
    where dedup.endsAt is null or dedup.endsAt > $3::bigint`,
  endDedups: `update piecework.dedup dedup set endsAt = given.endsAt
    from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[]) as given(queue, dedupKey, task, endsAt)
    where dedup.queue = given.queue and dedup.dedupKey = given.dedupKey and dedup.task = given.task`,
  dropDedups: `delete from piecework.dedup dedup
    using unnest($1::int[], $2::text[], $3::bigint[]) as given(queue, dedupKey, task)
    where dedup.queue = given.queue and dedup.dedupKey = given.dedupKey and dedup.task = given.task`,
  pruneDedup: `delete from piecework.dedup where (queue, dedupKey) in (
    select queue, dedupKey from piecework.dedup where endsAt <= $1 limit 10000 for update skip locked)`,

  batchesByName: `select id, name, sealedAt as "sealedAt" from piecework.batch where name = any($1::text[])`,
  batchById: 'select name, followUp as "followUp" from piecework.batch where id = $1::int',
  // Not sealed and not forgotten until our commit; folding goes on, since it changes no key.
  keepBatches:
    'select id from piecework.batch where id = any($1::int[]) and sealedAt is null order by id for key share',
  batches: `select ${named(['id', 'name', 'createdAt', 'sealedAt', 'finishedAt', 'info', 'followUp'], 'batch.')},
      ${batchColumns.map((c) => `batch.${c} + coalesce(moved.${c}, 0) as ${c}`).join(', ')}
    from piecework.batch batch left join (select batch,
      ${batchColumns.map((c) => `sum(${c})::bigint as ${c}`).join(', ')} from piecework.progress group by batch) moved
      on moved.batch = batch.id
    where ($1::text is null or batch.name = $1) and batch.id > $2 order by batch.id limit $3`,
  addBatches: `insert into piecework.batch (name, createdAt) select name, $2 from unnest($1::text[]) as given(name)
    order by name on conflict do nothing`,
  // Waits for enqueues under way into the batch, which must be counted before it can be said to be finished.
  lockBatch: 'select id, info, sealedAt as "sealedAt" from piecework.batch where name = $1 for update',
  // Lets enqueues go on; two that say what follows, or one and the end of the batch, come one after the other.
  holdBatch: 'select id, info, sealedAt as "sealedAt" from piecework.batch where name = $1 for no key update',
  // In one snapshot; no task can join a sealed batch, so that what is over here stays over.
  overBatches: `select id from piecework.batch batch where sealedAt is not null and finishedAt is null
    and total - done - dead - cancelled = (select coalesce(sum(coalesce(done, 0) + coalesce(dead, 0)
      + coalesce(cancelled, 0) - coalesce(total, 0)), 0) from piecework.progress where progress.batch = batch.id)
    order by id limit 100`,
  // Waits for nobody: another sweep may be at it, and whoever folds waits for us.
  finishBatch: `update piecework.batch batch set finishedAt = greatest(sealedAt, movedAt,
      (select max(at) from piecework.progress where progress.batch = batch.id))
    where id = (select id from piecework.batch where id = $1 and finishedAt is null for no key update skip locked)
    returning followUp as "followUp"`,
  setFollowUp: 'update piecework.batch set followUp = $1::text where id = $2::int',
  setBatch: 'update piecework.batch set sealedAt = $1, info = $2 where id = $3',
  forgetBatch: `with members as (delete from piecework.member where batch = $1)
    delete from piecework.batch where id = $1`,
  addMembers: `insert into piecework.member (batch, identity, task)
    select * from unnest($1::int[], $2::text[], $3::bigint[]) as given(batch, identity, task) order by batch, identity
    on conflict do nothing returning task`,
  setMembers: `update piecework.member member set task = given.task
    from unnest($1::int[], $2::text[], $3::bigint[]) as given(batch, identity, task)
    where member.batch = given.batch and member.identity = given.identity`,
  membersOf: `select member.batch, member.identity, member.task from piecework.member member
    join unnest($1::int[], $2::text[]) as given(batch, identity) using (batch, identity)`,

  anyReady: 'select from piecework.task where type = any($1::int[]) and state = 3 limit 1',
  workerNames: 'select id, name from piecework.worker where id = any($1::int[])',
  workers: `select ${named(['id', 'name', 'host', 'pid', 'bootId', 'proof', 'queues', 'concurrency'])},
    ${named(['busy', 'prefetched', 'aliveAt'])} from piecework.worker order by name`,
  join: `insert into piecework.worker (name, host, pid, bootId, proof, queues, concurrency, busy, prefetched, aliveAt)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    on conflict (name) do update set host = excluded.host, pid = excluded.pid, bootId = excluded.bootId,
    proof = excluded.proof, queues = excluded.queues, concurrency = excluded.concurrency, busy = excluded.busy,
    prefetched = excluded.prefetched, aliveAt = excluded.aliveAt`,
  meet: `insert into piecework.worker (name, host, pid, bootId, queues, concurrency, busy, prefetched, aliveAt)
    values ($1, '', 0, '', '[]', 0, 0, 0, $2) on conflict (name) do nothing returning id`,
  // A beat that tells nothing new is written seldom: 200 idle workers must not keep the disk busy.
  beat: `with given as (select * from unnest($1::text[], $2::int[], $3::int[]) as given(name, busy, prefetched)),
    written as (update piecework.worker worker set busy = given.busy, prefetched = given.prefetched,
        aliveAt = piecework.now_us() / 1000 from given where worker.name = given.name
      and (worker.busy <> given.busy or worker.prefetched <> given.prefetched
        or worker.aliveAt <= piecework.now_us() / 1000 - 5000))
    select worker.name, worker.proof, array(select task.id || '.' || fence || '.' || nonce || '.' || type
      from piecework.task task where state = 4 and flags & 1 = 1 and task.worker = worker.id) as cancelled
    from piecework.worker worker where name = any($1)`,
  leave: 'delete from piecework.worker where name = $1',
  lockWorker: 'select from piecework.worker where id = $1 for update skip locked',
  bury: 'delete from piecework.worker where id = $1',

  answerOf: 'select answer from piecework.answer where request = $1 and endsAt > $2',
  addAnswer: `insert into piecework.answer as kept (request, answer, endsAt) values ($1, $2, $3)
    on conflict (request) do update set answer = excluded.answer, endsAt = excluded.endsAt where kept.endsAt <= $4
    or kept.answer = $5 returning request`,
  setAnswer: 'update piecework.answer set answer = $2 where request = $1',
  pruneAnswers: `delete from piecework.answer where request in (
    select request from piecework.answer where endsAt <= $1 limit 10000 for update skip locked)`,
  schedules: `select ${named(['queue', 'name', 'settings', 'nextAt', 'lastAt'], 'schedule.')}
    from piecework.schedule schedule join piecework.queue queue on queue.id = schedule.queue
    order by queue.name, schedule.name`,
  lockSchedule: `select ${named(['queue', 'name', 'settings', 'nextAt', 'lastAt'])} from piecework.schedule
    where queue = $1 and name = $2 for update`,
  // A new one is not laid over what somebody else has made meanwhile.
  putSchedule: `insert into piecework.schedule (queue, name, settings, nextAt, lastAt) values ($1, $2, $3, $4, $5)
    on conflict (queue, name) do update set settings = excluded.settings, nextAt = excluded.nextAt,
    lastAt = excluded.lastAt where not $6 returning name`,
  dropSchedule: 'delete from piecework.schedule where queue = $1 and name = $2',
  dueSchedules: `select ${named(['queue', 'name', 'settings', 'nextAt', 'lastAt'])} from piecework.schedule
    where nextAt <= $1 order by nextAt, queue, name limit $2 for update skip locked`,
  setSlots: `update piecework.schedule schedule set nextAt = given.nextAt, lastAt = given.lastAt
    from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[]) as given(queue, name, nextAt, lastAt)
    where schedule.queue = given.queue and schedule.name = given.name`,
  limits: 'select id, name, queue, settings from piecework.limits order by name, id',
  addLimit: `insert into piecework.limits (name, settings, state) values ($1, $2, '{}')
    on conflict (name) do update set settings = excluded.settings`,
  addOwnLimit: `insert into piecework.limits (queue, settings, state) values ($1, '{}', '{}')
    on conflict (queue) do nothing`,
  setLimit: 'update piecework.limits set settings = $1 where id = $2',
  dropLimit: 'delete from piecework.limits where id = $1',
  limitState: 'select state from piecework.limits where id = $1',
  // Whoever has a limit has it until the commit: nobody waits for it with tasks locked, so nobody can wait in a circle.
  lockLimits: 'select id, state from piecework.limits where id = any($1) order by id for update skip locked',
  setLimitState: 'update piecework.limits set state = $1 where id = $2',
  addLimitNote: 'insert into piecework.limit_note (limitId, note) values ($1::int, $2::text)',
  takeLimitNotes: 'delete from piecework.limit_note where limitId = any($1) returning limitId as "limitId", note',
  leasedUnder: `select given.id, sum(type.leased + coalesce(moved.leased, 0))::bigint as leased
    from unnest($1::int[], $2::int[]) as given(id, type) join piecework.type type on type.id = given.type
    left join (select type, sum(leased) as leased from piecework.tally where type = any($2::int[]) group by type) moved
      on moved.type = given.type
    group by given.id`,
  tokens: `select ${named(['id', 'name', 'hash', 'scopes', 'queues', 'createdAt', 'expiresAt'])} from piecework.token
    order by name, createdAt, id`,
  addToken: `insert into piecework.token (id, name, hash, scopes, queues, createdAt, expiresAt)
    values ($1, $2, $3, $4, $5, $6, $7)`,
  dropToken: 'delete from piecework.token where id = $1',
  addAudit: 'insert into piecework.audit (at, actor, action, subject, details) values ($1, $2, $3, $4, $5)',

  // Everything a sweep must know to see that it has nothing to do.
  watch: `select piecework.now_us() as "nowUs", startedAt as "startedAt",
      (extract(epoch from pg_postmaster_start_time()) * 1000)::bigint as started,
      (extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint as "upMs",
      (select min(wakeAt) from piecework.task where state = 1) as due,
      (select min(wakeAt) from piecework.task where state = 4) as ending,
      (select min(deadlineAt) from piecework.task where deadlineAt is not null and state < 4) as deadline,
      (select min(nextAt) from piecework.schedule where nextAt is not null) as slot,
      exists (select from piecework.tally) or exists (select from piecework.progress) as deltas,
      exists (select from piecework.lane) as lanes,
      exists (select from piecework.batch where sealedAt is not null and finishedAt is null) as unfinished,
      (select min(endsAt) from piecework.answer) as answers, (select min(endsAt) from piecework.dedup) as dedups,
      (select min(endsAt) from piecework.result) as results, (select min(endsAt) from piecework.effect) as effects,
      (select min(ackedAt) from piecework.redelivered) as redelivered,
      (select count(*) from piecework.worker) as workers,
      array(select id from piecework.worker where proof is not null order by id) as ids,
      array(select proof from piecework.worker where proof is not null order by id) as proofs,
      array(select ((classid::bigint << 32) | objid::bigint)::text from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted
          and database = (select oid from pg_database where datname = current_database())) as held
    from piecework.store`,
  setStarted: 'update piecework.store set startedAt = $1 where startedAt <> $1',
  tryFold: 'select pg_try_advisory_xact_lock($1, 0) as ours',
  holdProof: 'select pg_advisory_lock_shared($1::bigint)',
  notify: 'select pg_notify($1, $2)',
} as const

export interface Statement {
  readonly name: string
  readonly text: string
}
export type Statements = { readonly [Name in keyof typeof texts]: Statement }

/** The statements for a schema of this name. */
export const statementsIn = (schema: string): Statements =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [
      name,
      { name: `${schema} ${name}`.slice(-63), text: inSchema(text, schema) },
    ]),
  ) as unknown as Statements
