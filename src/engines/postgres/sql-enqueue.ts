// `piecework.enqueue(queue, payload, options)`: an enqueue for triggers and for whoever speaks SQL alone.

/**
 * The same task that enqueue() of the library makes, in the transaction of the statement that calls it; answers its id.
 * Options as there: type, key, priority, delayMs, dueAt (ISO 8601 or ms), deadlineMs, dedupKey, batch, headers. A new
 * queue, type or batch is made in that transaction, and whoever else wants the same new name waits for its end.
 */
export const enqueueFunction = `
create function piecework.refuse(code text, message text) returns void language plpgsql as $refuse$
begin
  raise exception '%: %', code, message using errcode = '22023';
end $refuse$;

create function piecework.name_of(what text, name text) returns text language plpgsql as $name$
begin
  if name is null or length(name) not between 1 and 200 or name ~ '[\\u0001-\\u001f\\u007f-\\u009f]' then
    perform piecework.refuse('PW_NAME_INVALID', format('The %s is %s; names have 1 to 200 characters.', what, name));
  end if;
  return name;
end $name$;

create function piecework.whole_of(what text, options jsonb, low bigint, high bigint) returns bigint
  language plpgsql as $whole$
declare given text := options ->> what;
begin
  if given is null then return null; end if;
  if given !~ '^-?[0-9]{1,15}$' or given::bigint not between low and high then
    perform piecework.refuse('PW_OPTION_INVALID',
      format('%s is %s; it must be a whole number from %s to %s.', what, given, low, high));
  end if;
  return given::bigint;
end $whole$;

create function piecework.enqueue(queue text, payload json, options jsonb default '{}') returns bigint
  language plpgsql as $enqueue$
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
      replace(headers, U&'\\FFFF', U&'\\FFFF1'), replace(payload::text, U&'\\FFFF', U&'\\FFFF1'));
  insert into piecework.tally (type, scheduled, waiting, ready, enqueued) values (typeId,
    case when taskState = 1 then 1 end, case when taskState = 2 then 1 end, case when taskState = 3 then 1 end, 1);
  if batchId is not null then insert into piecework.progress (batch, total, at) values (batchId, 1, nowMs); end if;
  -- Whoever finds the note once this is committed lets the first of the key go.
  if taskState = 2 then insert into piecework.lane (queue, key) values (queueId, taskKey); end if;
  return taskId;
end $enqueue$;
`
