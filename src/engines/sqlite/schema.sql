-- What sqlite_master says of a fresh store: the file format, as every other program sees it.
-- Made by PW_RENEW_SCHEMA=1 npx vitest run test/engine/schema.test.ts; docs/format.md says what it all means.

create table piecework_store (
  one integer primary key check (one = 1),
  format integer not null,
  storeId text not null,
  fileId text not null,
  createdAt integer not null,
  bootId text not null,
  offsetUs integer not null,
  asleepMs integer not null,
  lostAt integer not null default 0,
  reservedUs integer not null,
  lastId integer not null,
  settings integer not null
) strict;

create table piecework_queue (
  id integer primary key,
  name text not null unique,
  createdAt integer not null,
  pausedAt integer,
  code text,
  operator text
) strict;

create table piecework_type (
  id integer primary key,
  queue integer not null,
  name text not null,
  pausedAt integer,
  mixed integer not null default 0,
  scheduled integer not null default 0,
  waiting integer not null default 0,
  ready integer not null default 0,
  leased integer not null default 0,
  dead integer not null default 0,
  enqueued integer not null default 0,
  deliveries integer not null default 0,
  done integer not null default 0,
  failures integer not null default 0,
  releases integer not null default 0,
  expiries integer not null default 0,
  deaths integer not null default 0,
  cancelled integer not null default 0,
  redrives integer not null default 0,
  discarded integer not null default 0,
  moved integer not null default 0,
  stale integer not null default 0,
  unique (queue, name)
) strict;

create table piecework_task (
  id integer primary key,
  queue integer not null,
  type integer not null,
  state integer not null,
  place integer not null,
  dueAt integer not null,
  wakeAt integer,
  wallAt integer,
  deadlineAt integer,
  number integer not null default 0,
  spent integer not null default 0,
  releases integer not null default 0,
  deaths integer not null default 0,
  fence integer not null default 0,
  nonce integer,
  worker integer,
  claimedAt integer,
  key text,
  slot integer not null default 0,
  weight integer not null default 1,
  priority integer not null default 0,
  batch integer,
  dedupKey text,
  flags integer not null default 0,
  moveTo integer,
  enqueuedAt integer not null,
  progress text,
  headers text,
  payload text not null
) strict;

create table piecework_dead (
  task integer primary key,
  type integer not null,
  reason text not null,
  code text,
  error text,
  fingerprint text,
  deadAt integer not null
) strict;

create table piecework_history (
  task integer not null,
  number integer not null,
  fence integer not null,
  outcome text not null,
  code text,
  error text,
  worker text,
  startedAt integer,
  endedAt integer not null,
  primary key (task, number, outcome)
) strict, without rowid;

create table piecework_dedup (
  queue integer not null,
  dedupKey text not null,
  task integer not null,
  endsAt integer,
  primary key (queue, dedupKey)
) strict, without rowid;

create table piecework_batch (
  id integer primary key autoincrement,
  name text not null unique,
  createdAt integer not null,
  sealedAt integer,
  finishedAt integer,
  total integer not null default 0,
  done integer not null default 0,
  dead integer not null default 0,
  cancelled integer not null default 0,
  retries integer not null default 0,
  returned integer not null default 0,
  info text not null default '{}'
, forwarded integer not null default 0, followUp text) strict;

create table piecework_member (
  batch integer not null,
  identity text not null,
  task integer not null,
  primary key (batch, identity)
) strict, without rowid;

create table piecework_worker (
  id integer primary key autoincrement,
  name text not null unique,
  host text not null,
  pid integer not null,
  bootId text not null,
  proof text,
  queues text not null,
  concurrency integer not null,
  busy integer not null,
  prefetched integer not null,
  aliveAt integer not null
) strict;

create table piecework_answer (
  request text primary key,
  answer text not null,
  endsAt integer not null
) strict, without rowid;

create table piecework_audit (
  id integer primary key,
  at integer not null,
  actor text not null,
  action text not null,
  subject text not null,
  details text not null
) strict;

create table piecework_token (
  id text primary key,
  name text not null,
  hash text not null,
  scopes text not null,
  queues text not null,
  createdAt integer not null,
  expiresAt integer
) strict, without rowid;

create table piecework_limit (
  id integer primary key,
  name text unique,
  queue integer unique,
  settings text not null,
  state text not null
) strict;

create table piecework_schedule (
  queue integer not null,
  name text not null,
  settings text not null,
  nextAt integer,
  lastAt integer,
  primary key (queue, name)
) strict, without rowid;

create table piecework_route (
  type integer primary key,
  goesTo integer not null
) strict;

create table piecework_result (
  task integer primary key,
  type integer not null,
  outcome text not null,
  result text,
  endedAt integer not null,
  endsAt integer not null
) strict;

create table piecework_effect (
  effectKey text not null,
  queue integer not null,
  task integer,
  endsAt integer not null,
  primary key (effectKey, queue)
) strict, without rowid;

create table piecework_redelivered (
  id integer primary key,
  task integer not null,
  type integer not null,
  key text,
  deliveries integer not null,
  workers text not null,
  enqueuedAt integer not null,
  startedAt integer,
  ackedAt integer not null
) strict;

create index piecework_task_ready on piecework_task (type, place) where state = 3;

create index piecework_task_scheduled on piecework_task (wakeAt) where state = 1;

create index piecework_task_leased on piecework_task (wakeAt) where state = 4;

create index piecework_task_deadline on piecework_task (deadlineAt) where deadlineAt is not null and state < 4;

create index piecework_task_waiting on piecework_task (queue, key, dueAt) where state = 2;

create index piecework_task_slot on piecework_task (queue, key) where slot = 1;

create index piecework_task_suspect on piecework_task (type, place) where state = 3 and deaths >= 2;

create index piecework_task_batch on piecework_task (batch) where batch is not null;

create index piecework_dead_type on piecework_dead (type, task);

create index piecework_dedup_ends on piecework_dedup (endsAt) where endsAt is not null;

create index piecework_answer_ends on piecework_answer (endsAt);

create index piecework_schedule_next on piecework_schedule (nextAt) where nextAt is not null;

create index piecework_result_ends on piecework_result (endsAt);

create index piecework_effect_ends on piecework_effect (endsAt);

create index piecework_redelivered_acked on piecework_redelivered (ackedAt);

create view piecework_tasks as
  select task.id, queue.name as queue, type.name as type,
    case task.state when 1 then 'scheduled' when 2 then 'waiting' when 3 then 'ready' when 4 then 'leased' else 'dead'
    end as state, task.key, task.number, task.spent, task.payload
  from piecework_task task
  join piecework_type type on type.id = task.type
  join piecework_queue queue on queue.id = task.queue;
