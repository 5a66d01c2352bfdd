-- Memories of coding agents (store/agentmemories.py): derived from the Markdown files under /memory/, written with them.

create table agent_memory (
    number integer primary key autoincrement,     -- ties of a ranking are broken by it: the older one first
    id text not null unique,                      -- the document's; with -2, -3, … for further pieces of one file
    container_id integer not null references container (id) on delete cascade,
    document_id text not null references document (id) on delete cascade,
    ordinal integer not null,                     -- of the piece in its file, from 0
    content_hash text not null,                   -- of the file that it was read from
    content text not null,
    folded integer not null,                      -- 63 bits of a hash of the folded text: exact duplicates
    tags text not null,                           -- JSON array
    project text,                                 -- null: of none
    metadata text not null,                       -- JSON object
    access_count integer not null default 0,
    created_at_ms integer not null,
    updated_at_ms integer not null,
    unique (document_id, ordinal)
) strict;

create index agent_memory_newest on agent_memory (container_id, created_at_ms, number);
create index agent_memory_folded on agent_memory (container_id, folded);

-- What an index of these follows. Old rows go; who is further behind reads all again.
create table agent_event (
    id integer primary key autoincrement,
    container_id integer not null references container (id) on delete cascade,
    number integer not null                       -- of the memory that came, changed or went
) strict;

create index agent_event_of_container on agent_event (container_id, id);

create trigger agent_memory_came after insert on agent_memory begin
    insert into agent_event (container_id, number) values (new.container_id, new.number);
end;
create trigger agent_memory_changed after update of content, tags, project, created_at_ms, container_id on agent_memory begin
    insert into agent_event (container_id, number) values (new.container_id, new.number);
    insert into agent_event (container_id, number)
    select id, old.number from container where id = old.container_id and id <> new.container_id;
end;
create trigger agent_memory_went after delete on agent_memory begin
    insert into agent_event (container_id, number) select id, old.number from container where id = old.container_id;
end;
create trigger agent_memory_follows_document after update of container_id on document
when old.container_id <> new.container_id begin
    update agent_memory set container_id = new.container_id where document_id = new.id;
end;

-- What a hook told a session.
create table agent_injection (
    id integer primary key autoincrement,
    container_id integer not null references container (id) on delete cascade,
    session_id text not null,
    host text not null,
    block text not null,                          -- one id for all memories of one answer
    memory_id text not null,                      -- outlives the memory
    tokens integer not null,                      -- about, of its part of the block
    at_ms integer not null,
    used_at_ms integer,                           -- when a tool read, found, changed or deleted it afterwards
    unique (container_id, session_id, memory_id)
) strict;

create index agent_injection_by_time on agent_injection (container_id, at_ms);
create index agent_injection_unused on agent_injection (container_id, memory_id) where used_at_ms is null;

-- What tools did, by day.
create table agent_usage (
    container_id integer not null references container (id) on delete cascade,
    day integer not null,                         -- since the epoch, UTC
    searches integer not null default 0,
    stored integer not null default 0,
    primary key (container_id, day)
) strict, without rowid;
