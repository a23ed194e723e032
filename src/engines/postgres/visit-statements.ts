// The statements of what is done once: callers' transactions, effect keys, and acks of what was delivered again.
export const visitTexts = {
  identity: 'select storeId as "storeId", current_database() as database from piecework.store',
  // The first of a caller's transaction: which store it is in, its number, and a mark that goes with it.
  visit: `select format, storeId as "storeId", current_database() as database, settings, piecework.now_us() as "nowUs",
    pg_current_xact_id()::text as xid, set_config('piecework.visit', $1::text, true) as mark from piecework.store`,
  visited: `select current_setting('piecework.visit', true) as mark`,
  // Leaves nothing of the caller's transaction but its rollback.
  refuse: `do $$ begin raise exception 'piecework refused a call in this transaction'; end $$`,
  ended: `select xid::text as xid, pg_xact_status(xid) as status from unnest($1::xid8[]) as given(xid)`,
  holds: 'select from piecework.task where id = $1 and fence = $2 and nonce = $3',

  // A task that was moved has its marks in the queue where they were made.
  addEffect: `insert into piecework.effect (effectKey, queue, task, endsAt)
    select $1::text, $2::int, $3::bigint, $4::bigint
    where not exists (select from piecework.effect where effectKey = $1::text and task = $3::bigint)
    on conflict do nothing returning queue`,
  pruneEffects: `delete from piecework.effect where (effectKey, queue) in (
    select effectKey, queue from piecework.effect effect where endsAt <= $1
      and not exists (select from piecework.task task where task.id = effect.task) limit 10000 for update skip locked)`,
  pruneRedelivered: 'delete from piecework.redelivered where ackedAt <= $1',
  // Of a task that is still there: looked at again some time later, so that each look is short.
  keepEffects: `update piecework.effect effect set endsAt = $1::bigint + $2::bigint where endsAt <= $1
    and exists (select from piecework.task task where task.id = effect.task)`,
  // Null for what the task's row still says.
  keepRedelivered: `with gone as (delete from piecework.history where task = any($1::bigint[])
      returning task, number, worker)
    insert into piecework.redelivered (task, type, key, deliveries, workers, enqueuedAt, startedAt, ackedAt)
    select task, type, key, deliveries, (select coalesce(json_agg(name order by n), '[]')::text from (
        select name, min(n) as n from (
          select gone.worker as name, number as n from gone where gone.task = given.task and gone.worker is not null
          union all select name, given.deliveries from piecework.worker worker where worker.id = given.worker) each
        group by name) named),
      coalesce(enqueuedAt, (select task.enqueuedAt from piecework.task task where task.id = given.task)), startedAt,
      ackedAt
    from unnest($1::bigint[], $2::int[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[])
      as given(task, type, key, deliveries, worker, enqueuedAt, startedAt, ackedAt)`,
} as const
