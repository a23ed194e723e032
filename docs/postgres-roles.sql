-- Three roles for a store on PostgreSQL, each with what its programs do and nothing else; run it as the schema's owner.
-- Run it again after `piecework migrate`. Put the schema's name in place of `piecework` if yours has another one.
--
--   piecework_producer  adds tasks, says what follows batches and seals them, reads figures; sees no payload and no
--                       result, takes no task, and replaces and delays none by a dedup key
--   piecework_worker    claims, settles and sweeps, and adds tasks as its handlers do; replaces no payload, pauses nothing
--                       (it could cancel and move: rows cannot tell that from the end of such a delivery)
--   piecework_operator  pauses, cancels, moves, redrives, edits and discards, keeps limits and tokens; adds and claims
--                       no task
--
-- A program logs in as a user of its own: create role shop login password '…' in role piecework_producer;
-- A broker serves all of this and is in all three. Who creates and migrates the store owns it and is in none. Nobody
-- needs a right on the schema `public`. Nobody but the owner changes what was written to the audit or the format.

do $$
declare name text;
begin
  foreach name in array array['piecework_producer', 'piecework_worker', 'piecework_operator'] loop
    if not exists (select from pg_roles where rolname = name) then execute format('create role %I', name); end if;
    execute format('revoke all on all tables in schema piecework from %I', name);
  end loop;
end $$;

-- All three: names, figures, and the notes of keys that have room.
grant usage on schema piecework to piecework_producer, piecework_worker, piecework_operator;
grant execute on function piecework.now_us() to piecework_producer, piecework_worker, piecework_operator;
grant select on piecework.store, piecework.queue, piecework.type, piecework.tally, piecework.progress, piecework.batch,
  piecework.worker, piecework.lane, piecework.answer, piecework.dedup, piecework.member, piecework.limits,
  piecework.route, piecework.schedule
  to piecework_producer, piecework_worker, piecework_operator;
grant insert on piecework.tally, piecework.progress, piecework.lane, piecework.audit, piecework.queue, piecework.type,
  piecework.limits
  to piecework_producer, piecework_worker, piecework_operator;
grant update (settings) on piecework.store to piecework_producer, piecework_worker, piecework_operator;
grant update (mixed) on piecework.type to piecework_producer, piecework_worker, piecework_operator;
grant delete on piecework.lane to piecework_producer, piecework_worker, piecework_operator;
grant insert on piecework.batch to piecework_producer, piecework_worker, piecework_operator;
grant update (sealedAt, finishedAt, followUp, info) on piecework.batch to piecework_producer, piecework_worker, piecework_operator;
-- Schedules stand in the code of programs.
grant insert, update, delete on piecework.schedule to piecework_producer, piecework_worker, piecework_operator;
-- A key's next task is promoted by whoever made room for it.
grant update (state, slot) on piecework.task to piecework_producer;

-- Adding tasks. The policy that a program brings along is its own to write; pauses and operators' settings are not.
grant insert on piecework.task to piecework_producer, piecework_worker;
grant usage on sequence piecework.task_id to piecework_producer, piecework_worker;
grant insert, update on piecework.dedup, piecework.member, piecework.answer to piecework_producer, piecework_worker;
grant update (code) on piecework.queue to piecework_producer, piecework_worker;
grant select (id, queue, type, state, place, dueAt, wakeAt, deadlineAt, number, spent, claimedAt, key, slot, batch,
  enqueuedAt) on piecework.task to piecework_producer;

-- Sweeping, which the connections of workers do for the store; those of operators only what an operator's acts bring about.
grant select, delete on piecework.task to piecework_worker, piecework_operator;
grant update (queue, type, state, place, dueAt, wakeAt, deadlineAt, spent, releases, deaths, nonce, worker, slot, flags,
  dedupKey, moveTo, progress, batch) on piecework.task to piecework_worker, piecework_operator;
grant select, insert, update, delete on piecework.dead, piecework.history, piecework.result
  to piecework_worker, piecework_operator;
grant select, delete on piecework.redelivered to piecework_worker, piecework_operator;
grant select, update, delete on piecework.effect to piecework_worker, piecework_operator;
grant delete on piecework.tally, piecework.progress, piecework.answer, piecework.worker, piecework.dedup
  to piecework_worker, piecework_operator;
grant insert, update on piecework.dedup to piecework_operator;
grant update on piecework.answer, piecework.worker, piecework.type, piecework.batch
  to piecework_worker, piecework_operator;
grant insert on piecework.limit_note to piecework_worker, piecework_operator;
grant update (startedAt) on piecework.store to piecework_worker, piecework_operator;
grant select on piecework.tasks to piecework_worker, piecework_operator;

-- Claiming: a new number and fence, and what limits remember; marks of what was done.
grant update (number, fence, claimedAt) on piecework.task to piecework_worker;
grant insert on piecework.worker, piecework.effect, piecework.redelivered to piecework_worker;
grant update (state) on piecework.limits to piecework_worker;
grant select, delete on piecework.limit_note to piecework_worker;

-- Operating.
grant update (code, operator, pausedAt) on piecework.queue to piecework_operator;
grant update (payload) on piecework.task to piecework_operator;
grant delete on piecework.batch, piecework.member to piecework_operator;
grant select on piecework.audit to piecework_operator;
grant update (settings), delete on piecework.limits to piecework_operator;
grant insert, update, delete on piecework.route to piecework_operator;
grant select, insert, delete on piecework.token to piecework_operator;
