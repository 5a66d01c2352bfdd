-- The sync engine's own records, one database per mount (sync.db). Everything here can be derived again from the mount and the
-- server, at the price of comparing both; nothing here is the only copy of a user's byte.
-- Paths are absolute in the mount and stored as BLOB (the raw bytes), because file names need not be UTF-8 and a BLOB range
-- [p||'/', p||'0') is exactly "everything below p". Revisions and sequence numbers are the server's; it is the only clock.

-- Single values: epoch, watermark (every change of the feed up to it is in `remote`), intents_seq (every intent of the
-- filesystem up to it is in `queue`), profile_version, held_deletions.
create table meta (
    key   text primary key,
    value text not null
) without rowid;

-- What both sides last agreed on. kind '' is a tombstone: both agreed on "nothing there" at `revision`; it is needed until
-- the feed has passed that revision, and dropped then.
create table base (
    path         blob primary key,
    kind         text not null,             -- file, dir, symlink, or '' for a tombstone
    content_hash text not null,
    mode         integer not null,
    revision     integer not null,
    ino          integer not null default 0, -- with `version`: the local contents that have content_hash; 0 for unknown
    version      integer not null default 0
) without rowid;

-- What the server holds at `watermark`: a function of the feed alone, so it is always one consistent state.
create table remote (
    path         blob primary key,
    kind         text not null,
    content_hash text not null,
    mode         integer not null,
    revision     integer not null,
    size_bytes   integer not null,
    mtime_ns     integer not null
) without rowid;

-- Paths to look at again, latest wins. A row is claimed (inflight) at a generation; a change that comes in meanwhile raises
-- `generation`, and the result of the claim then leaves the row here.
create table queue (
    path                   blob primary key,
    seq                    integer not null,    -- order of arrival
    generation             integer not null,
    state                  text not null check (state in ('ready', 'inflight', 'parked')),
    inflight_started_at_ms integer,             -- wall clock, for people
    attempts               integer not null default 0,
    due_at_s               real not null,       -- monotonic clock of this run; 0 after a restart
    burst_at_s             real not null,       -- when the present burst of changes began; bounds the debounce
    first_seen_ms          integer not null,    -- wall clock, for people
    error                  text not null default '',
    sent_hash              text,                -- what was sent with no answer known: '' for a delete
    sent_mode              integer not null default 0,
    key_seed               text not null        -- makes idempotency keys; renewed with every definite answer
) without rowid;
create index queue_order on queue (state, seq);
create index queue_due on queue (state, due_at_s);

-- Renames that the server should repeat as one operation, in order.
create table move (
    id           integer primary key autoincrement,
    source       blob not null,
    path         blob not null,
    attempts     integer not null default 0,
    due_at_s     real not null default 0,
    answered_seq integer not null default 0,    -- done by the server at this seq; waits for the feed to bring it
    key_seed     text not null,
    error        text not null default ''
);

-- Conflict copies made here, for `memdir status`.
create table conflict (
    path     blob primary key,                  -- the copy
    original blob not null,
    at_ms    integer not null
) without rowid;
