-- What one mount knows of the documents of a server without /v1 (plain.db). All of it can be learned again by listing the
-- server, under another life (`life`), so that the engine then compares everything.
-- Paths are absolute in the mount, as BLOB like in sync.db.

-- Single values: life, marker (the id of the container's marker document), seq (the last number given out), feed_from (the feed
-- does not reach back before it), watermark_us (newest updatedAt that was taken in, microseconds of the server's clock), scanned.
create table meta (
    key   text primary key,
    value text not null
) without rowid;

create table document (
    id           text primary key,
    filepath     text,                        -- as the server says it; null: the document has no place
    path         blob,                        -- where it is shown; null: it is not
    kind         text not null default '',    -- file, symlink; '' as long as its contents are not known
    content_hash text not null default '',
    size_bytes   integer not null default 0,
    mode         integer not null default 0,
    mtime_ns     integer not null default 0,
    revision     integer not null default 0,  -- our number of what is shown
    custom_id    text,
    write_key    text not null default '',    -- of the write by a mount that made these contents
    replaces     text not null default '',    -- the document that this one takes the place of
    created_us   integer not null,
    updated_us   integer not null,            -- the server's clock, as last looked at
    status       text not null,               -- the server's word; `dropped`: the server gave it up by itself
    note         text not null default ''     -- why it is not shown, or what the server said about it
) without rowid;
create unique index document_by_path on document (path) where path is not null;
create index document_unsettled on document (status) where status not in ('done', 'failed', 'dropped');
create index document_waiting on document (filepath) where path is null;

-- Folders exist on this side only: the server has none.
create table folder (
    path     blob primary key,
    mode     integer not null,
    mtime_ns integer not null,
    revision integer not null
) without rowid;

-- Changes that the engine has not taken in, as JSON of v1.Change.
create table feed (
    seq    integer primary key,
    change text not null
);

-- Creations that were sent: with the same key it is the same one. document_id '' while no answer came.
create table sent (
    write_key   text primary key,
    document_id text not null default '',
    number      integer not null
) without rowid;
