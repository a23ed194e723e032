// The tables of a SQLite store and the numbered steps that bring an older file to this version's format.

/** The format this version reads and writes; a file with a higher one is refused (PW_SCHEMA_NEW). */
export const format = 3

/** Step n brings a store from format n-1 to n. Steps never change once released; src names the columns' meaning. */
export const migrations: readonly { to: number; sql: string }[] = [
  {
    to: 1,
    sql: `
create table piecework_store (
  one integer primary key check (one = 1),
  format integer not null,
  storeId text not null,          -- drawn at creation; a copy keeps it
  fileId text not null,           -- device and inode when last opened; another one means a copy or a restored backup
  createdAt integer not null,     -- wall clock, ms
  bootId text not null,           -- the boot that offsetUs belongs to
  offsetUs integer not null,      -- engine clock = monotonic clock + offset
  asleepMs integer not null,      -- uptime minus monotonic clock, as far as it is in offsetUs already
  lostAt integer not null default 0, -- up to here, time in which nobody could write was given back to leases
  reservedUs integer not null,    -- synced before the engine clock reaches it; no number given out is above it
  lastId integer not null,
  settings integer not null       -- rises when a queue, type or policy changes, so that caches notice
) strict;

create table piecework_queue (
  id integer primary key,
  name text not null unique,
  createdAt integer not null,
  pausedAt integer,
  code text,                      -- policy layer declared by programs, JSON
  operator text                   -- policy layer set by operators, JSON; wins
) strict;

create table piecework_type (
  id integer primary key,
  queue integer not null,
  name text not null,
  pausedAt integer,
  mixed integer not null default 0, -- 1: places and due instants may be in different orders
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
  state integer not null,         -- 1 scheduled 2 waiting 3 ready 4 leased 5 dead
  place integer not null,         -- ms; lowest is claimed first
  dueAt integer not null,         -- ms; when it was or will be due; the order within a key
  wakeAt integer,                 -- scheduled: the due instant; leased: the lease's end
  wallAt integer,                 -- scheduled by dueAt: that instant of the wall clock
  deadlineAt integer,
  number integer not null default 0,   -- deliveries ever
  spent integer not null default 0,    -- deliveries that count, since enqueue or redrive
  releases integer not null default 0, -- free releases by a handler
  deaths integer not null default 0,   -- workers that died holding it, since enqueue or redrive
  fence integer not null default 0,
  nonce integer,                  -- null: no receipt acts
  worker integer,                 -- who holds it; null on a ready task with a nonce: the worker died
  claimedAt integer,
  key text,
  slot integer not null default 0, -- 1: holds one of its key's slots
  weight integer not null default 1,
  priority integer not null default 0,
  batch integer,
  dedupKey text,
  flags integer not null default 0, -- 1 cancel asked, 2 dropped at its deadline
  moveTo integer,                 -- the type it goes to when its delivery ends
  enqueuedAt integer not null,
  progress text,
  headers text,
  payload text not null
) strict;
create index piecework_task_ready on piecework_task (type, place) where state = 3;
create index piecework_task_scheduled on piecework_task (wakeAt) where state = 1;
create index piecework_task_leased on piecework_task (wakeAt) where state = 4;
create index piecework_task_deadline on piecework_task (deadlineAt) where deadlineAt is not null and state < 4;
create index piecework_task_waiting on piecework_task (queue, key, dueAt) where state = 2;
create index piecework_task_slot on piecework_task (queue, key) where slot = 1;
create index piecework_task_suspect on piecework_task (type, place) where state = 3 and deaths >= 2;
create index piecework_task_batch on piecework_task (batch) where batch is not null;

create table piecework_dead (
  task integer primary key,
  type integer not null,
  reason text not null,
  code text,
  error text,
  fingerprint text,
  deadAt integer not null
) strict;
create index piecework_dead_type on piecework_dead (type, task);

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
  endsAt integer,                 -- null while its task lives
  primary key (queue, dedupKey)
) strict, without rowid;
create index piecework_dedup_ends on piecework_dedup (endsAt) where endsAt is not null;

create table piecework_batch (
  id integer primary key autoincrement, -- never used twice
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
) strict;

create table piecework_member (
  batch integer not null,
  identity text not null,
  task integer not null,
  primary key (batch, identity)
) strict, without rowid;

create table piecework_worker (
  id integer primary key autoincrement, -- never used twice
  name text not null unique,
  host text not null,
  pid integer not null,
  bootId text not null,
  proof text,                     -- the file whose lock shows that its process lives
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
create index piecework_answer_ends on piecework_answer (endsAt);

create table piecework_audit (
  id integer primary key,
  at integer not null,
  actor text not null,
  action text not null,
  subject text not null,
  details text not null
) strict;

create view piecework_tasks as
  select task.id, queue.name as queue, type.name as type,
    case task.state when 1 then 'scheduled' when 2 then 'waiting' when 3 then 'ready' when 4 then 'leased' else 'dead'
    end as state, task.key, task.number, task.spent, task.payload
  from piecework_task task
  join piecework_type type on type.id = task.type
  join piecework_queue queue on queue.id = task.queue;
`,
  },
  {
    to: 2,
    sql: `
create table piecework_token (
  id text primary key,            -- the part of a token that is no secret
  name text not null,             -- whose it is; two of one name may live, so that one can follow the other
  hash text not null,             -- sha256 of its secret part
  scopes text not null,           -- JSON
  queues text not null,           -- JSON: globs
  createdAt integer not null,     -- wall clock, ms
  expiresAt integer               -- wall clock, ms; null: never
) strict, without rowid;
`,
  },
  {
    to: 3,
    sql: `
create table piecework_limit (
  id integer primary key,
  name text unique,               -- null: the own limit of a queue
  queue integer unique,           -- the queue whose own it is
  settings text not null,         -- JSON: concurrencyMax, perSecondMax, adaptive
  state text not null             -- JSON: what a claim has to know of the past; src/task/limiter.ts
) strict;

create table piecework_schedule (
  queue integer not null,
  name text not null,
  settings text not null,         -- JSON: when, and the task that is enqueued then
  nextAt integer,                 -- the next slot, wall clock, ms; null: none is left
  lastAt integer,                 -- the last slot that was enqueued or skipped
  primary key (queue, name)
) strict, without rowid;
create index piecework_schedule_next on piecework_schedule (nextAt) where nextAt is not null;

create table piecework_route (
  type integer primary key,       -- what is enqueued as this type
  goesTo integer not null         -- becomes a task of that one
) strict;

create table piecework_result (
  task integer primary key,
  type integer not null,
  outcome text not null,          -- done or cancelled
  result text,                    -- JSON
  endedAt integer not null,
  endsAt integer not null         -- kept until then
) strict;
create index piecework_result_ends on piecework_result (endsAt);

create table piecework_effect (
  effectKey text not null,
  queue integer not null,
  task integer,                   -- whose work it was: the mark stays at least as long as that
  endsAt integer not null,        -- kept until then
  primary key (effectKey, queue)
) strict, without rowid;
create index piecework_effect_ends on piecework_effect (endsAt);

create table piecework_redelivered (
  id integer primary key,
  task integer not null,
  type integer not null,
  key text,
  deliveries integer not null,
  workers text not null,          -- JSON: names, the first one first
  enqueuedAt integer not null,
  startedAt integer,              -- of the last delivery
  ackedAt integer not null
) strict;
create index piecework_redelivered_acked on piecework_redelivered (ackedAt);

alter table piecework_batch add column forwarded integer not null default 0;
alter table piecework_batch add column followUp text; -- JSON: what the commit that finishes it enqueues; followup.ts
-- Finished is sealed with nothing open, once for ever; before, it was said of every batch with nothing open.
update piecework_batch set finishedAt = case when sealedAt is not null and total = done + dead + cancelled
  then coalesce(finishedAt, sealedAt) end;
`,
  },
]
