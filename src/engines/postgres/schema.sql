-- What the catalog says of a fresh PostgreSQL store, as every other program sees it.
-- Made by PW_RENEW_SCHEMA=1 npx vitest run test/postgres/schema.test.ts.

table answer (
  request text not null,
  answer text not null,
  endsat bigint not null
);

CREATE INDEX answer_ends ON piecework.answer USING btree (endsat);

CREATE UNIQUE INDEX answer_pkey ON piecework.answer USING btree (request);

table audit (
  id bigint not null identity,
  at bigint not null,
  actor text not null,
  action text not null,
  subject text not null,
  details text not null
);

CREATE UNIQUE INDEX audit_pkey ON piecework.audit USING btree (id);

table batch (
  id integer not null identity,
  name text not null,
  createdat bigint not null,
  sealedat bigint,
  movedat bigint,
  total bigint not null default 0,
  done bigint not null default 0,
  dead bigint not null default 0,
  cancelled bigint not null default 0,
  retries bigint not null default 0,
  returned bigint not null default 0,
  info text not null default '{}'::text,
  followup text,
  forwarded bigint not null default 0,
  finishedat bigint
) with (fillfactor=50);

CREATE UNIQUE INDEX batch_name_key ON piecework.batch USING btree (name);

CREATE UNIQUE INDEX batch_pkey ON piecework.batch USING btree (id);

CREATE INDEX batch_unfinished ON piecework.batch USING btree (id) WHERE ((sealedat IS NOT NULL) AND (finishedat IS NULL));

table dead (
  task bigint not null,
  type integer not null,
  reason text not null,
  code text,
  error text,
  fingerprint text,
  deadat bigint not null
);

CREATE UNIQUE INDEX dead_pkey ON piecework.dead USING btree (task);

CREATE INDEX dead_type ON piecework.dead USING btree (type, task);

table dedup (
  queue integer not null,
  dedupkey text not null,
  task bigint not null,
  endsat bigint
);

CREATE INDEX dedup_ends ON piecework.dedup USING btree (endsat) WHERE (endsat IS NOT NULL);

CREATE UNIQUE INDEX dedup_pkey ON piecework.dedup USING btree (queue, dedupkey);

table effect (
  effectkey text not null,
  queue integer not null,
  task bigint,
  endsat bigint not null
);

CREATE INDEX effect_ends ON piecework.effect USING btree (endsat);

CREATE UNIQUE INDEX effect_pkey ON piecework.effect USING btree (effectkey, queue);

CREATE OR REPLACE FUNCTION piecework.enqueue(queue text, payload json, options jsonb DEFAULT '{}'::jsonb)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_variable
declare
  known constant text[] := array['type', 'key', 'priority', 'delayMs', 'dueAt', 'deadlineMs', 'dedupKey', 'batch',
    'headers'];
  strange text := (select option from jsonb_object_keys(options) as given(option) where option <> all(known) limit 1);
  nowMs bigint := piecework.now_us() / 1000;
  queueName text := piecework.name_of('queue name', queue);
  typeName text := case when options ? 'type' then piecework.name_of('type', options ->> 'type') else queueName end;
  taskKey text := case when options ? 'key' then piecework.name_of('key', options ->> 'key') end;
  held text := case when options ? 'dedupKey' then piecework.name_of('dedupKey', options ->> 'dedupKey') end;
  headers text := case when options ? 'headers' then (options -> 'headers')::text end;
  priority bigint := coalesce(piecework.whole_of('priority', options, -100, 100), 0);
  delayMs bigint := piecework.whole_of('delayMs', options, 0, 315360000000);
  deadlineMs bigint := piecework.whole_of('deadlineMs', options, 1, 315360000000);
  dueAt bigint;
  headStartMs bigint;
  queueId integer;
  typeId integer;
  leftId integer;
  batchId integer;
  taskId bigint := nextval('piecework.task_id');
  standing bigint;
  taskState smallint;
begin
  if strange is not null then
    perform piecework.refuse('PW_OPTION_UNKNOWN', format('piecework.enqueue has no option "%s".', strange));
  end if;
  if payload is null then
    perform piecework.refuse('PW_PAYLOAD_NOT_JSON', 'The payload is null; write ''null''.');
  end if;
  if octet_length(payload::text) > 1048576 then
    perform piecework.refuse('PW_PAYLOAD_TOO_LARGE', 'The payload has more than 1 MiB.');
  end if;
  if headers is not null and exists (select from jsonb_each(options -> 'headers') where jsonb_typeof(value) <> 'string')
  then
    perform piecework.refuse('PW_OPTION_INVALID', 'headers must be an object of texts.');
  end if;
  if options ? 'dueAt' then
    if delayMs is not null then
      perform piecework.refuse('PW_OPTION_INVALID', 'delayMs and dueAt both say when; give one of them.');
    end if;
    dueAt := case when jsonb_typeof(options -> 'dueAt') = 'number'
      then piecework.whole_of('dueAt', options, 0, 7258118400000)
      else ceil(extract(epoch from (options ->> 'dueAt')::timestamptz) * 1000) end;
  end if;

  select id into queueId from piecework.queue where name = queueName;
  if queueId is null then
    insert into piecework.queue (name, createdAt) values (queueName, nowMs) on conflict do nothing;
    select id into queueId from piecework.queue where name = queueName;
    update piecework.store set settings = settings + 1;
  end if;
  select id into typeId from piecework.type type where type.queue = queueId and name = typeName;
  if typeId is null then
    insert into piecework.type (queue, name) values (queueId, typeName) on conflict do nothing;
    select id into typeId from piecework.type type where type.queue = queueId and name = typeName;
    update piecework.store set settings = settings + 1;
  end if;
  -- Where it was moved to, new ones of its type follow.
  leftId := queueId;
  select type.id, type.queue into typeId, queueId from piecework.type type where type.id = coalesce(
    (select goesTo from piecework.route route where route.type = typeId), typeId);

  if options ? 'batch' then
    insert into piecework.batch (name, createdAt)
      values (piecework.name_of('batch', options ->> 'batch'), nowMs) on conflict do nothing;
    select id into batchId from piecework.batch where name = options ->> 'batch' and sealedAt is null for key share;
    if batchId is null then
      perform piecework.refuse('PW_BATCH_SEALED', format('The batch "%s" is sealed.', options ->> 'batch'));
    end if;
  end if;

  if held is not null then
    select task into standing from piecework.dedup dedup where dedup.queue = leftId and leftId <> queueId
      and dedupKey = held and (endsAt is null or endsAt > nowMs);
    if standing is not null then return standing; end if;
    insert into piecework.dedup (queue, dedupKey, task) values (queueId, held, taskId)
      on conflict on constraint dedup_pkey do update set task = excluded.task, endsAt = null where dedup.endsAt <= nowMs
      returning task into standing;
    if standing is null then
      return (select task from piecework.dedup dedup where dedup.queue = queueId and dedupKey = held);
    end if;
  end if;

  headStartMs := (select coalesce((operator::jsonb ->> 'headStartMs')::bigint, (code::jsonb ->> 'headStartMs')::bigint,
    60000) from piecework.queue where id = queueId);
  dueAt := coalesce(dueAt, nowMs + coalesce(delayMs, 0));
  taskState := case when dueAt > nowMs then 1 when taskKey is not null then 2 else 3 end;
  if priority <> 0 then update piecework.type set mixed = 1 where id = typeId and mixed = 0; end if;
  insert into piecework.task (id, queue, type, state, place, dueAt, wakeAt, deadlineAt, key, priority, batch, dedupKey,
      enqueuedAt, headers, payload)
    values (taskId, queueId, typeId, taskState, dueAt - priority * headStartMs, dueAt,
      case when taskState = 1 then dueAt end, nowMs + deadlineMs, taskKey, priority, batchId, held, nowMs,
      replace(headers, U&'\FFFF', U&'\FFFF1'), replace(payload::text, U&'\FFFF', U&'\FFFF1'));
  insert into piecework.tally (type, scheduled, waiting, ready, enqueued) values (typeId,
    case when taskState = 1 then 1 end, case when taskState = 2 then 1 end, case when taskState = 3 then 1 end, 1);
  if batchId is not null then insert into piecework.progress (batch, total, at) values (batchId, 1, nowMs); end if;
  -- Whoever finds the note once this is committed lets the first of the key go.
  if taskState = 2 then insert into piecework.lane (queue, key) values (queueId, taskKey); end if;
  return taskId;
end $function$;

table history (
  task bigint not null,
  number integer not null,
  fence bigint not null,
  outcome text not null,
  code text,
  error text,
  worker text,
  startedat bigint,
  endedat bigint not null
);

CREATE UNIQUE INDEX history_pkey ON piecework.history USING btree (task, number, outcome);

table lane (
  queue integer not null,
  key text not null
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

CREATE INDEX lane_key ON piecework.lane USING btree (queue, key);

table limit_note (
  limitid integer not null,
  note text not null
);

CREATE INDEX limit_note_limit ON piecework.limit_note USING btree (limitid);

table limits (
  id integer not null identity,
  name text,
  queue integer,
  settings text not null,
  state text not null
);

CREATE UNIQUE INDEX limits_name_key ON piecework.limits USING btree (name);

CREATE UNIQUE INDEX limits_pkey ON piecework.limits USING btree (id);

CREATE UNIQUE INDEX limits_queue_key ON piecework.limits USING btree (queue);

table member (
  batch integer not null,
  identity text not null,
  task bigint not null
);

CREATE UNIQUE INDEX member_pkey ON piecework.member USING btree (batch, identity);

CREATE OR REPLACE FUNCTION piecework.name_of(what text, name text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  if name is null or length(name) not between 1 and 200 or name ~ '[\u0001-\u001f\u007f-\u009f]' then
    perform piecework.refuse('PW_NAME_INVALID', format('The %s is %s; names have 1 to 200 characters.', what, name));
  end if;
  return name;
end $function$;

CREATE OR REPLACE FUNCTION piecework.now_us()
 RETURNS bigint
 LANGUAGE sql
 PARALLEL SAFE
AS $function$select (extract(epoch from clock_timestamp()) * 1000000)::bigint$function$;

table progress (
  batch integer not null,
  total integer,
  done integer,
  dead integer,
  cancelled integer,
  retries integer,
  returned integer,
  at bigint not null,
  forwarded integer
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

table queue (
  id integer not null identity,
  name text not null,
  createdat bigint not null,
  pausedat bigint,
  code text,
  operator text
);

CREATE UNIQUE INDEX queue_name_key ON piecework.queue USING btree (name);

CREATE UNIQUE INDEX queue_pkey ON piecework.queue USING btree (id);

table redelivered (
  id bigint not null identity,
  task bigint not null,
  type integer not null,
  key text,
  deliveries integer not null,
  workers text not null,
  enqueuedat bigint not null,
  startedat bigint,
  ackedat bigint not null
);

CREATE INDEX redelivered_acked ON piecework.redelivered USING btree (ackedat);

CREATE UNIQUE INDEX redelivered_pkey ON piecework.redelivered USING btree (id);

CREATE OR REPLACE FUNCTION piecework.refuse(code text, message text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '%: %', code, message using errcode = '22023';
end $function$;

table result (
  task bigint not null,
  type integer not null,
  outcome text not null,
  result text,
  endedat bigint not null,
  endsat bigint not null
);

CREATE INDEX result_ends ON piecework.result USING btree (endsat);

CREATE UNIQUE INDEX result_pkey ON piecework.result USING btree (task);

table route (
  type integer not null,
  goesto integer not null
);

CREATE UNIQUE INDEX route_pkey ON piecework.route USING btree (type);

table schedule (
  queue integer not null,
  name text not null,
  settings text not null,
  nextat bigint,
  lastat bigint
);

CREATE INDEX schedule_next ON piecework.schedule USING btree (nextat) WHERE (nextat IS NOT NULL);

CREATE UNIQUE INDEX schedule_pkey ON piecework.schedule USING btree (queue, name);

table store (
  one integer not null,
  format integer not null,
  storeid uuid not null,
  createdat bigint not null,
  startedat bigint not null,
  settings bigint not null
);

CREATE UNIQUE INDEX store_pkey ON piecework.store USING btree (one);

table tally (
  type integer not null,
  scheduled integer,
  waiting integer,
  ready integer,
  leased integer,
  dead integer,
  enqueued integer,
  deliveries integer,
  done integer,
  failures integer,
  releases integer,
  expiries integer,
  deaths integer,
  cancelled integer,
  redrives integer,
  discarded integer,
  moved integer,
  stale integer
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

table task (
  id bigint not null default nextval('piecework.task_id'::regclass),
  queue integer not null,
  type integer not null,
  state smallint not null,
  place bigint not null,
  dueat bigint not null,
  wakeat bigint,
  deadlineat bigint,
  number integer not null default 0,
  spent integer not null default 0,
  releases integer not null default 0,
  deaths integer not null default 0,
  fence bigint not null default 0,
  nonce bigint,
  worker integer,
  claimedat bigint,
  key text,
  slot smallint not null default 0,
  weight double precision not null default 1,
  priority smallint not null default 0,
  batch integer,
  dedupkey text,
  flags smallint not null default 0,
  moveto integer,
  enqueuedat bigint not null,
  progress text,
  headers text,
  payload text not null
) with (fillfactor=85, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000, autovacuum_vacuum_insert_scale_factor=0.2, autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

CREATE INDEX task_batch ON piecework.task USING btree (batch) WHERE (batch IS NOT NULL);

CREATE INDEX task_deadline ON piecework.task USING btree (deadlineat) WHERE ((deadlineat IS NOT NULL) AND (state < 4));

CREATE INDEX task_leased ON piecework.task USING btree (wakeat) WHERE (state = 4);

CREATE UNIQUE INDEX task_pkey ON piecework.task USING btree (id);

CREATE INDEX task_ready ON piecework.task USING btree (type, place, id) WHERE (state = 3);

CREATE INDEX task_scheduled ON piecework.task USING btree (wakeat) WHERE (state = 1);

CREATE INDEX task_slot ON piecework.task USING btree (queue, key) WHERE (slot = 1);

CREATE INDEX task_suspect ON piecework.task USING btree (type, place, id) WHERE ((state = 3) AND (deaths >= 2));

CREATE INDEX task_waiting ON piecework.task USING btree (queue, key, dueat, id) WHERE (state = 2);

view tasks as
 SELECT task.id,
    queue.name AS queue,
    type.name AS type,
        CASE task.state
            WHEN 1 THEN 'scheduled'::text
            WHEN 2 THEN 'waiting'::text
            WHEN 3 THEN 'ready'::text
            WHEN 4 THEN 'leased'::text
            ELSE 'dead'::text
        END AS state,
    task.key,
    task.number,
    task.spent,
    task.payload
   FROM ((piecework.task task
     JOIN piecework.type type ON ((type.id = task.type)))
     JOIN piecework.queue queue ON ((queue.id = task.queue)));

table token (
  id text not null,
  name text not null,
  hash text not null,
  scopes text not null,
  queues text not null,
  createdat bigint not null,
  expiresat bigint
);

CREATE UNIQUE INDEX token_pkey ON piecework.token USING btree (id);

table type (
  id integer not null identity,
  queue integer not null,
  name text not null,
  pausedat bigint,
  mixed integer not null default 0,
  scheduled bigint not null default 0,
  waiting bigint not null default 0,
  ready bigint not null default 0,
  leased bigint not null default 0,
  dead bigint not null default 0,
  enqueued bigint not null default 0,
  deliveries bigint not null default 0,
  done bigint not null default 0,
  failures bigint not null default 0,
  releases bigint not null default 0,
  expiries bigint not null default 0,
  deaths bigint not null default 0,
  cancelled bigint not null default 0,
  redrives bigint not null default 0,
  discarded bigint not null default 0,
  moved bigint not null default 0,
  stale bigint not null default 0
) with (fillfactor=50);

CREATE UNIQUE INDEX type_pkey ON piecework.type USING btree (id);

CREATE UNIQUE INDEX type_queue_name_key ON piecework.type USING btree (queue, name);

CREATE OR REPLACE FUNCTION piecework.whole_of(what text, options jsonb, low bigint, high bigint)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare given text := options ->> what;
begin
  if given is null then return null; end if;
  if given !~ '^-?[0-9]{1,15}$' or given::bigint not between low and high then
    perform piecework.refuse('PW_OPTION_INVALID',
      format('%s is %s; it must be a whole number from %s to %s.', what, given, low, high));
  end if;
  return given::bigint;
end $function$;

table worker (
  id integer not null identity,
  name text not null,
  host text not null,
  pid integer not null,
  bootid text not null,
  proof text,
  queues text not null,
  concurrency integer not null,
  busy integer not null,
  prefetched integer not null,
  aliveat bigint not null
) with (fillfactor=50);

CREATE UNIQUE INDEX worker_name_key ON piecework.worker USING btree (name);

CREATE UNIQUE INDEX worker_pkey ON piecework.worker USING btree (id);
