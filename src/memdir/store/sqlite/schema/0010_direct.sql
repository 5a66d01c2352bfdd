-- What clients say directly: memories without a document, what a document is for, the address it stands for, and its metadata
-- as rows that a filter finds by index.

alter table document add column task_type text not null default 'memory'   -- superrag: found by search, no memories are drawn
    check (task_type in ('memory', 'superrag'));
alter table document add column url text;                   -- the content was one address; it is kept and not fetched

-- One row for each value in a document's metadata, so that filters are lookups and not scans. Written with the document.
create table document_facet (
    document_id text not null references document (id) on delete cascade,
    key text not null,
    ordinal integer not null,                     -- 0 for a plain value; from 1 for the items of a list
    container_id integer not null,                -- of the document
    head text not null,                           -- the first 64 characters of text, in lower case: what the index holds
    text text not null,                           -- as JSON spells it: true, 12, or the string
    folded text not null,                         -- text without regard to case
    number real,                                  -- text as a number, when it is one
    primary key (document_id, key, ordinal)
) strict, without rowid;

create index document_facet_by_text on document_facet (container_id, key, head);
create index document_facet_by_number on document_facet (container_id, key, number);

-- Documents from before this table. Case is folded for ASCII only here, until they are written again.
insert into document_facet (document_id, key, ordinal, container_id, head, text, folded, number)
select f.document_id, f.key, f.ordinal, f.container_id, substr(lower(f.text), 1, 64), f.text, lower(f.text),
       case when f.type in ('integer', 'real') then f.text + 0.0
            when f.type = 'text' and f.text <> '' and f.text not glob '*[^0-9]*' then f.text + 0.0 end
from (
    select d.id as document_id, d.container_id, e.key, e.type,
           0 as ordinal,
           case e.type when 'true' then 'true' when 'false' then 'false' else cast(e.value as text) end as text
    from document d, json_each(d.metadata) e where e.type not in ('array', 'object', 'null')
    union all
    select d.id, d.container_id, e.key, i.type, i.key + 1,
           case i.type when 'true' then 'true' when 'false' then 'false' else cast(i.value as text) end
    from document d, json_each(d.metadata) e, json_each(e.value) i
    where e.type = 'array' and i.type not in ('array', 'object', 'null')
) f;

alter table memory add column metadata text not null default '{}';   -- JSON object of the client
alter table memory add column forget_after_ms integer;               -- forgotten from then on
alter table memory add column forget_reason text;

create index memory_of_root on memory (root_id);

-- A source may be a document, or a call of the API. SQLite cannot make a column nullable, so the table is made again.
drop trigger memory_needs_source;
drop trigger memory_gone;
drop index memory_source_of_document;
alter table memory_source rename to memory_source_before;
create table memory_source (
    id integer primary key autoincrement,
    memory_id text not null references memory (id) on delete cascade,
    document_id text references document (id) on delete cascade,   -- null: said by a call
    caller text,                                  -- of a call: id of the API key
    revision integer not null,
    stands integer not null default 1,            -- 0: the document says something else there now
    confidence real not null,
    start_byte integer not null,
    end_byte integer not null,
    start_line integer not null,
    end_line integer not null,
    unique (memory_id, document_id),
    check ((document_id is null) <> (caller is null))
) strict;
insert into memory_source (id, memory_id, document_id, revision, stands, confidence, start_byte, end_byte, start_line, end_line)
select id, memory_id, document_id, revision, stands, confidence, start_byte, end_byte, start_line, end_line
from memory_source_before;
drop table memory_source_before;

create index memory_source_of_document on memory_source (document_id);

-- As in 0002: a memory without any source goes; what it had superseded holds again if its own source still says it.
create trigger memory_needs_source after delete on memory_source begin
    delete from memory
    where id = old.memory_id and not exists (select 1 from memory_source s where s.memory_id = old.memory_id);
end;
create trigger memory_gone after delete on memory begin
    update memory set is_latest = 1
    where id = old.parent_id and old.is_latest = 1 and old.relation in ('updates', 'contradicts')
      and exists (select 1 from memory_source s where s.memory_id = old.parent_id and s.stands = 1);
    update memory set parent_id = old.parent_id where parent_id = old.id;
    update container set profile_version = profile_version + 1 where id = old.container_id;
end;
