-- Since when a fact is so: the columns of store/sqlite/schema/0004_validity.sql.

alter table memory add column said_at_ms bigint not null default 0, add column valid_from_ms bigint not null default 0;
comment on column memory.said_at_ms is
    'The day that the statement is of: by its line, its document''s date, else when it was written down';
comment on column memory.valid_from_ms is 'Since when it is so: the day that its words name, else said_at_ms';
update memory set said_at_ms = created_at_ms, valid_from_ms = created_at_ms;
