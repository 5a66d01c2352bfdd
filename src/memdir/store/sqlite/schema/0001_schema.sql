-- The server's store on SQLite. What is derived from documents (passages, vectors, memories) can be rebuilt, and goes with its
-- document, by foreign key and trigger, whoever deletes the document.

-- One memory of one organisation. Ids are never used again, so that what is cached under an id cannot meet another life.
create table container (
    id integer primary key autoincrement,
    org_id text not null,
    tag text not null,                            -- the name that clients use
    epoch text not null,                          -- random; names this life of the tag, another one means: compare everything
    last_seq integer not null default 0,          -- number of the last change; the next is last_seq + 1, without a gap
    profile_version integer not null default 0,   -- grows whenever the memories may read differently
    settings text not null default '{}',          -- JSON: memoryFilesystemPaths and what else a client set
    created_at_ms integer not null,
    updated_at_ms integer not null,
    first_seq integer not null default 1,         -- number of the first change that is still told
    facets_version integer not null default 0,    -- number of the last change of any metadata in it
    unique (org_id, tag)
) strict;

-- Bytes, once for each SHA-256. Small ones are here, larger ones in a file below blobs/ at a place that is never used twice, so
-- that deleting one cannot meet a new life of the same bytes.
create table blob (
    hash text primary key,                        -- SHA-256, lower-case hex
    size_bytes integer not null,
    ref_count integer not null,                   -- documents that hold it; the row goes with the last one
    data blob,                                    -- null: in a file
    place text                                    -- of a file: <first two digits>/<hash>.<id>
) strict, without rowid;

-- A file, folder or symlink at its current revision, or a document without a place (path null).
-- Folders are implicit: a row with kind 'dir' exists only for one that was put.
create table document (
    id text primary key,
    container_id integer not null references container (id) on delete cascade,
    custom_id text,                               -- a client's own name for it
    path text,                                    -- absolute, without a trailing slash
    kind text not null check (kind in ('file', 'dir', 'symlink')),
    title text,
    media_type text not null default '',
    status text not null check (status in ('queued', 'extracting', 'chunking', 'embedding', 'indexing', 'done', 'failed')),
    error text,                                   -- why it failed, or a note on what could not be derived
    content_hash text not null,                   -- SHA-256 of the bytes; of the target for a symlink; of nothing for a folder
    size_bytes integer not null,
    mode integer not null,
    mtime_ns integer not null,
    revision integer not null,                    -- number of the change that made it; counted by itself when path is null
    indexed_hash text,                            -- content hash that its chunks were made from; null: none yet
    metadata text not null default '{}',          -- JSON object of the client
    created_at_ms integer not null,
    updated_at_ms integer not null,
    -- superrag: found by search, no memories are drawn
    task_type text not null default 'memory' check (task_type in ('memory', 'superrag')),
    url text,                                     -- the content was one address; it is kept and not fetched
    content_at_ms integer not null default 0,     -- since when it has this content and mode; 0: not known
    facets_version integer not null default 0,    -- number of the last change of its metadata; 0: none
    searched_last text,                           -- null; 'generated': a tool wrote it; 'ignored': an ignore file names it
    unique (container_id, path),
    unique (container_id, custom_id)
) strict;
create index document_by_hash on document (content_hash);
create index document_by_creation on document (container_id, created_at_ms, id) where kind = 'file';
create index document_by_update on document (container_id, updated_at_ms, id) where kind = 'file';
create index document_by_facets on document (container_id, facets_version) where facets_version > 0;
create index document_unfinished on document (container_id, path) where status not in ('done', 'failed');
create index document_unfinished_by_update on document (container_id, updated_at_ms, id) where status not in ('done', 'failed');
create index document_unsearchable on document (container_id, path) where status in ('queued', 'extracting', 'chunking');

-- History of a container in commit order, without gaps. A move or delete of a folder is one row for all below it.
create table change (
    container_id integer not null references container (id) on delete cascade,
    seq integer not null,
    kind text not null check (kind in ('put', 'move', 'delete')),
    path text not null,
    from_path text,                               -- of a move
    document_id text,                             -- of a put, with the columns below: the entry as it was then
    entry_kind text,
    content_hash text,
    size_bytes integer,
    mode integer,
    mtime_ns integer,
    at_ms integer not null,
    -- Drawn for each change: a store that was restored draws others for the same numbers.
    token text not null default '',
    primary key (container_id, seq)
) strict, without rowid;
create index change_moves on change (container_id, seq) where kind = 'move';

-- Work on a document: at most one row of a kind, the newest revision wins. The row goes when the work is done.
create table job (
    document_id text not null references document (id) on delete cascade,
    kind text not null check (kind in ('index', 'embed', 'memory')),
    container_id integer not null references container (id) on delete cascade,
    priority integer not null,                    -- 0 interactive, 1 bulk; lower goes first
    generation integer not null default 1,        -- grows when the work changed; only the newest may end the row
    attempts integer not null default 0,
    not_before_ms integer not null,               -- back-off after a failure
    leased_until_ms integer not null default 0,   -- above now: somebody works on it
    created_at_ms integer not null,
    turn integer not null default 0,              -- place in its class: containers take turns, see store/jobs
    owner text not null default '',               -- the worker that holds the lease
    claims integer not null default 0,            -- grows with each claim; an older one may write nothing
    deaths integer not null default 0,            -- claims whose worker vanished instead of ending the work
    failed_at_ms integer,                         -- given up, stays until it is asked for again; null: alive
    reason text,                                  -- why it was given up
    primary key (document_id, kind)
) strict, without rowid;
create index job_next on job (kind, priority, turn, created_at_ms) where failed_at_ms is null;
create index job_last_turn on job (container_id, kind, priority, turn) where failed_at_ms is null;
create index job_failed on job (failed_at_ms) where failed_at_ms is not null;

-- Who may call. The secret itself is not here.
create table api_key (
    id text primary key,
    org_id text not null,
    name text not null,
    secret_hash blob not null unique,             -- SHA-256 of a 256-bit random secret: needs no salt and no stretching
    scopes text not null,                         -- JSON: {"containers": ["*"], "actions": ["read", "write", "admin"]}
    created_at_ms integer not null,
    revoked_at_ms integer,
    user_id text,                                 -- null: the organisation's own
    expires_at_ms integer,                        -- null: never
    last_used_at_ms integer,                      -- to a few minutes: not a write for each request
    rotated_from text,                            -- the key in whose place this one came
    limits text not null default '{}'             -- JSON: requestsPerMinute, documents, bytes
) strict;
create index api_key_of_org on api_key (org_id, name);

-- Answers of calls that changed something, so that a repeated call gets the same answer. Gone after a day.
create table idempotency (
    container_id integer not null references container (id) on delete cascade,
    key text not null,
    request_hash blob not null,                   -- another request under the same key is refused
    answer text not null,                         -- JSON
    at_ms integer not null,
    primary key (container_id, key)
) strict, without rowid;
create index idempotency_by_age on idempotency (at_ms);

-- A passage of a document's text. Ids are never used again: vectors that arrive late must not meet another passage.
create table chunk (
    id integer primary key autoincrement,
    document_id text not null references document (id) on delete cascade,
    container_id integer not null,                -- of the document; kept equal by a trigger
    revision integer not null,                    -- of the document when the passage was cut
    ordinal integer not null,                     -- place in the document, from 0
    start_byte integer not null,                  -- half open, in the original bytes
    end_byte integer not null,
    start_line integer not null,                  -- from 1, both inclusive
    end_line integer not null,
    text text not null,                           -- exactly the span, decoded
    context text not null,                        -- title and headings: indexed and embedded with the text, never shown as it
    text_hash blob not null                       -- SHA-256 of what is embedded (store/text/passage_text.py), for "never twice"
) strict;
create index chunk_of_document on chunk (document_id, ordinal);
create index chunk_of_container on chunk (container_id);
create index chunk_by_text on chunk (text_hash);
-- The passage at a byte of a document.
create index chunk_of_document_by_start on chunk (document_id, start_byte);

-- Embedding models by name, so that a vector row carries a small number.
create table vector_model (
    id integer primary key,
    name text not null unique
) strict;

-- One vector of one passage by one model: float16, little endian, L2-normalised.
create table chunk_vector (
    model_id integer not null references vector_model (id),
    chunk_id integer not null references chunk (id) on delete cascade,
    vector blob not null,
    lines blob,                                   -- vectors of its lines for choosing among them; packed by the model's side
    primary key (model_id, chunk_id)
) strict;
create index chunk_vector_of_chunk on chunk_vector (chunk_id);

-- What changed for those who hold vectors in memory: read from the last id they know on, pruned as it grows.
create table vector_event (
    id integer primary key autoincrement,
    container_id integer not null,
    kind text not null check (kind in ('add', 'drop', 'path')),
    chunk_id integer,                             -- of add and drop
    model_id integer,                             -- of add
    document_id text                              -- of path: the document stands elsewhere now
) strict;

-- A fact drawn from documents. Updates do not change it: a newer one supersedes it and points back.
create table memory (
    id text primary key,
    container_id integer not null references container (id) on delete cascade,
    root_id text not null,                        -- id of the first version
    parent_id text,                               -- the memory it supersedes, extends or is derived from
    relation text check (relation in ('updates', 'extends', 'derives', 'contradicts')),
    version integer not null,                     -- 1, 2, … within root_id
    is_latest integer not null default 1,         -- 0: superseded
    is_forgotten integer not null default 0,      -- 1: out of the profile, still found when asked for
    kind text not null check (kind in ('static', 'dynamic')),
    subject text not null,
    text text not null,
    confidence real not null,
    created_at_ms integer not null,
    updated_at_ms integer not null,
    metadata text not null default '{}',          -- JSON object of the client
    forget_after_ms integer,                      -- forgotten from then on
    forget_reason text,
    is_embedded integer not null default 0        -- 0: vectors are still to be made
) strict;
create index memory_latest on memory (container_id, kind desc, updated_at_ms desc) where is_latest = 1;
create index memory_parent on memory (parent_id);
create index memory_of_root on memory (root_id);
create index memory_of_subject on memory (container_id, subject);
create index memory_to_embed on memory (id) where is_embedded = 0;
create index memory_by_creation on memory (container_id, created_at_ms, id) where is_latest = 1;
create index memory_by_update on memory (container_id, updated_at_ms, id) where is_latest = 1;
create index memory_by_text on memory (substr(text, 1, 64), container_id) where is_latest = 1;

-- Places whose bytes are not wanted for sure (pending), not wanted any more (due), or being deleted (deleting).
create table blob_trash (
    place text primary key,
    hash text not null,
    size_bytes integer not null,
    state text not null check (state in ('pending', 'due', 'deleting')),
    not_before_ms integer not null,               -- when a collector may take it: the end of an upload's time, or of a lease
    attempts integer not null default 0           -- of collectors
) strict, without rowid;
create index blob_trash_next on blob_trash (not_before_ms);
create index blob_trash_by_hash on blob_trash (hash) where state = 'due';

-- While a row here lies in the future, no bytes are deleted: a backup still reads them.
create table blob_hold (
    id text primary key,
    until_ms integer not null
) strict, without rowid;

-- Who there is: organisations, the people in them, what their keys may do, and what was done with them.
create table org (
    id text primary key,                          -- 'local' is the server's own, whose admin keys manage the others
    name text not null unique,
    limits text not null default '{}',            -- JSON: documents, bytes; what is absent is unlimited
    created_at_ms integer not null
) strict;

create table app_user (
    id text primary key,
    org_id text not null references org (id) on delete cascade,
    name text not null,
    email text not null default '',
    created_at_ms integer not null,
    unique (org_id, name)
) strict;

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

-- The turn that each class of work has reached. Work of a container that had none joins here, not at the end and not before.
create table job_clock (
    kind text not null,
    priority integer not null,
    turn integer not null,
    primary key (kind, priority)
) strict, without rowid;

-- Former contents of documents, kept for a while. Each row holds one reference to its blob.
create table document_version (
    id integer primary key autoincrement,         -- the version's number; never used again
    container_id integer not null references container (id) on delete cascade,
    document_id text not null,                    -- whose content it was; the document may be gone
    path text,                                    -- where the document stood then
    kind text not null check (kind in ('file', 'symlink')),
    custom_id text,
    metadata text not null,                       -- JSON, as the document had it
    content_hash text not null,
    size_bytes integer not null,
    mode integer not null,
    mtime_ns integer not null,
    revision integer not null,                    -- of the document when it had this content
    reason text not null check (reason in ('replaced', 'deleted')),
    ended_at_ms integer not null,                 -- when it ceased to be the content
    began_at_ms integer not null default 0,       -- since when it was the content; 0: not known
    ended_seq integer not null default 0          -- changes after this number do not concern it; 0: not known
) strict;
create index document_version_of_document on document_version (document_id, id);
create index document_version_by_path on document_version (container_id, path);
create index document_version_by_age on document_version (container_id, ended_at_ms);
create index document_version_by_hash on document_version (content_hash);
create index document_version_deleted on document_version (container_id, id) where reason = 'deleted';

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

-- Provenance: where a memory was read, or who said it. The oldest row that still stands is the one shown.
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
create index memory_source_of_document on memory_source (document_id, start_byte);

-- Contents that an export under way still reads: one reference each. Rows go when it ends, or when their time is over.
create table export_hold (
    export_id text not null,
    org_id text not null,
    content_hash text not null,
    until_ms integer not null,                    -- whoever holds longer than that is taken for dead
    primary key (export_id, content_hash)
) strict, without rowid;

-- One row for each thing that a passage mentions (store/text/mentions.py): a file, an address, a number, a name.
create table chunk_tie (
    container_id integer not null,                -- of the passage; kept equal by a trigger
    number integer not null,                      -- of the thing: 64 bits of a hash
    chunk_id integer not null references chunk (id) on delete cascade,
    primary key (container_id, number, chunk_id)
) strict, without rowid;
create index chunk_tie_of_chunk on chunk_tie (chunk_id);

-- Files by the last component of their path: a bare name in a text means a file wherever that stands.
create table document_name (
    document_id text primary key references document (id) on delete cascade,
    container_id integer not null,
    name text not null
) strict, without rowid;
create index document_by_name on document_name (container_id, name);

-- Memories are found by their meaning, as passages are: a vector of each by every model.
create table memory_vector (
    model_id integer not null references vector_model (id),
    memory_id text not null references memory (id) on delete cascade,
    container_id integer not null,                -- of the memory
    vector blob not null,                         -- float16, little endian, L2-normalised
    primary key (model_id, memory_id)
) strict;
create index memory_vector_of_memory on memory_vector (memory_id);

-- Memories of coding agents: derived from the Markdown files under /memory/, written with them.
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
create index agent_memory_of_project on agent_memory (container_id, project, created_at_ms, number);
create index agent_memory_folded on agent_memory (container_id, folded);
-- The memories of a container in the order of their numbers (the row id, which every index ends with): an index of them is read
-- so, page by page.
create index agent_memory_by_number on agent_memory (container_id);

-- What an index of these follows. Old rows go; who is further behind reads all again.
create table agent_event (
    id integer primary key autoincrement,
    container_id integer not null references container (id) on delete cascade,
    number integer not null                       -- of the memory that came, changed or went
) strict;
create index agent_event_of_container on agent_event (container_id, id);

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

create trigger vector_event_add after insert on chunk_vector begin
    insert into vector_event (container_id, kind, chunk_id, model_id)
    select container_id, 'add', id, new.model_id from chunk where id = new.chunk_id;
end;

create trigger vector_event_drop after delete on chunk begin
    insert into vector_event (container_id, kind, chunk_id) values (old.container_id, 'drop', old.id);
end;

create trigger vector_event_path after update of path on document when old.path is not new.path begin
    insert into vector_event (container_id, kind, document_id)
    select new.container_id, 'path', new.id where exists (select 1 from chunk where document_id = new.id);
end;

-- A document that changes its container takes its passages along: gone from the one, new in the other.
create trigger chunk_follows_document after update of container_id on document when old.container_id <> new.container_id begin
    insert into vector_event (container_id, kind, chunk_id)
    select old.container_id, 'drop', id from chunk where document_id = new.id;
    update chunk set container_id = new.container_id where document_id = new.id;
    insert into vector_event (container_id, kind, chunk_id, model_id)
    select new.container_id, 'add', v.chunk_id, v.model_id
    from chunk c join chunk_vector v on v.chunk_id = c.id where c.document_id = new.id;
end;

-- A memory without any source goes; what it had superseded holds again if another document still says it.
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

-- A passage in another container takes what it mentions along.
create trigger tie_follows_passage after update of container_id on chunk when old.container_id <> new.container_id begin
    update chunk_tie set container_id = new.container_id where chunk_id = new.id;
end;

create trigger document_name_insert after insert on document when new.kind = 'file' and new.path is not null begin
    insert into document_name (document_id, container_id, name)
    values (new.id, new.container_id, substr(new.path, length(rtrim(new.path, replace(new.path, '/', ''))) + 1));
end;

create trigger document_name_update after update of path, container_id, kind on document
when old.path is not new.path or old.container_id <> new.container_id or old.kind <> new.kind begin
    delete from document_name where document_id = new.id;
    insert into document_name (document_id, container_id, name)
    select new.id, new.container_id, substr(new.path, length(rtrim(new.path, replace(new.path, '/', ''))) + 1)
    where new.kind = 'file' and new.path is not null;
end;

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

insert into org (id, name, created_at_ms) values ('local', 'local', 0);
insert into job_clock (kind, priority, turn)
values ('index', 0, 0), ('index', 1, 0), ('embed', 0, 0), ('embed', 1, 0), ('memory', 0, 0), ('memory', 1, 0);
