-- Answers of calls that carried an idempotency key, so that a repeated call gets the same answer. Gone after a day.
create table answer (
    org_id text not null,
    caller text not null,                         -- id of the API key: two callers' keys never meet
    key text not null,
    request_hash blob not null,                   -- another request under the same key is refused
    status integer,                               -- null: being carried out since at_ms
    content_type text,
    body blob,
    at_ms integer not null,
    primary key (org_id, caller, key)
) strict, without rowid;

create index answer_by_age on answer (at_ms);
