-- What a mount's sync engine keeps.

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
    version      integer not null default 0,
    -- Missing at the server, and not deleted here before somebody says so. 1: a comparison within one life of the server;
    -- 2: the server was wiped or restored. Any new agreement on the path begins with 0.
    held         integer not null default 0,
    -- The newest intent of the filesystem when this was put into the mount, or found there; 0 for what was there before any.
    -- A rename that was noted earlier, and is taken in later, moved something else away.
    since_intent integer not null default 0
) without rowid;
create index base_by_hash on base (content_hash) where kind = 'file';
-- Tombstones are dropped with every page of the feed, and are few among all that was agreed on.
create index base_tombstones on base (revision) where kind = '';
create index base_held on base (path) where held != 0;
-- Copies that other machines made are ordinary files; their names tell: ' (conflict ' as bytes.
create index base_conflicts on base (path) where instr(path, X'2028636f6e666c69637420') > 0;

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
-- Where the server has given contents: a file that was renamed here before its bytes came is fetched from where they still are.
create index remote_by_hash on remote (content_hash) where kind = 'file';

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
    key_seed               text not null,       -- makes idempotency keys; renewed with every definite answer
    -- 1: it stands for everything known below its path, too: what waited there when its folder was deleted.
    deep                   integer not null default 0
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
    error        text not null default '',
    claimed      integer not null default 0,    -- 1: it may have been sent, and is never joined with a later one
    first_seen_ms integer not null default 0    -- since when it waits: wall clock, for people
);

-- Conflict copies made here, for `memdir status`.
create table conflict (
    path     blob primary key,                  -- the copy
    original blob not null,
    at_ms    integer not null,
    base_revision   integer not null default 0, -- what it was about
    remote_revision integer not null default 0,
    settled         integer not null default 0  -- 1: somebody said that both sides are to stay
) without rowid;

-- What was sent and not answered for sure, by the path at the server. It is apart from the queue, because the file may change,
-- move or go before the answer is known, and more than one try may be open. `on_revision` is what stood there when it was sent (0:
-- nothing): a change of the server with a greater number decides it, either as this very content or against it.
create table sent (
    id           integer primary key autoincrement,
    path         blob not null,
    kind         text not null,
    content_hash text not null,
    mode         integer not null,
    on_revision  integer not null
);
create index sent_by_path on sent (path);

-- Numbers of the feed with the token of the change, for `sync.pull.epochs`: at most 64, thinner towards the beginning.
create table mark (
    seq   integer primary key,
    token text not null
);

-- Files that the server took and does not yet search, or could not read: what `sync.push.processing` asks about.
create table processing (
    path        blob primary key,
    document_id text not null,
    revision    integer not null,
    error       text                        -- null: still being processed; else why it failed
) without rowid;
create index processing_by_document on processing (document_id);

-- Folders that stay on this machine because tools made them and can make them again (sync/artifacts.py), as they were met.
create table artifact (
    path blob primary key,                        -- of the folder
    reason text not null                          -- what it is, in words
) strict, without rowid;
