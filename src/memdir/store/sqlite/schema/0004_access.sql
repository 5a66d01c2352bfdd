-- Who there is: organisations, the people in them, what their keys may do, and what was done with them.

create table org (
    id text primary key,                          -- 'local' is the server's own, whose admin keys manage the others
    name text not null unique,
    limits text not null default '{}',            -- JSON: documents, bytes; what is absent is unlimited
    created_at_ms integer not null
) strict;

insert into org (id, name, created_at_ms)
select org_id, org_id, 0 from (select org_id from api_key union select org_id from container union select 'local');

create table app_user (
    id text primary key,
    org_id text not null references org (id) on delete cascade,
    name text not null,
    email text not null default '',
    created_at_ms integer not null,
    unique (org_id, name)
) strict;

alter table api_key add column user_id text;          -- null: the organisation's own
alter table api_key add column expires_at_ms integer; -- null: never
alter table api_key add column last_used_at_ms integer; -- to a few minutes: not a write for each request
alter table api_key add column rotated_from text;     -- the key in whose place this one came
alter table api_key add column limits text not null default '{}'; -- JSON: requestsPerMinute, documents, bytes

create index api_key_of_org on api_key (org_id, name);

-- One row for each call that came through the API with a known key. No contents, no secrets.
create table audit (
    id integer primary key autoincrement,
    at_ms integer not null,
    org_id text not null,
    user_id text,
    key_id text not null,
    action text not null,                         -- read, write, admin
    call text not null,                           -- method and route, such as PUT /v1/files/{path}
    container text,                               -- tag, or several separated by commas
    target text,                                  -- path or id that was named
    status integer not null,                      -- of the answer
    request_id text not null,
    address text not null                         -- of the client
) strict;

create index audit_of_org on audit (org_id, id);
create index audit_by_age on audit (at_ms);
