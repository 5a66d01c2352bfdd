-- The server's truth: containers, the documents in them, their bytes, their history, and the work still to be done.
-- Times ending in _ms are milliseconds since the epoch. Text compares by bytes (BINARY), so that everything below a folder
-- is the range  path >= folder || '/'  and  path < folder || '0'  ('0' is the character after '/').

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
    unique (org_id, tag)
) strict;

-- Bytes, once for each SHA-256. Small ones are here, larger ones in the file blobs/<first two digits>/<hash>.
create table blob (
    hash text primary key,                        -- SHA-256, lower-case hex
    size_bytes integer not null,
    ref_count integer not null,                   -- documents that hold it; the row goes with the last one
    data blob                                     -- null: in a file
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
    unique (container_id, path),
    unique (container_id, custom_id)
) strict;

create index document_by_update on document (container_id, updated_at_ms);
-- Few rows at any time: what a reader may have to wait for.
create index document_unfinished on document (container_id, status) where status not in ('done', 'failed');
create index document_by_hash on document (content_hash);

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
    primary key (container_id, seq)
) strict, without rowid;

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
    primary key (document_id, kind)
) strict, without rowid;

create index job_next on job (kind, priority, created_at_ms);

-- Who may call. The secret itself is not here.
create table api_key (
    id text primary key,
    org_id text not null,
    name text not null,
    secret_hash blob not null unique,             -- SHA-256 of a 256-bit random secret: needs no salt and no stretching
    scopes text not null,                         -- JSON: {"containers": ["*"], "actions": ["read", "write", "admin"]}
    created_at_ms integer not null,
    revoked_at_ms integer
) strict;

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
