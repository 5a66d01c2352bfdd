-- The filesystem of one mount. The rows show the state after journal record `meta.applied_lsn`; what came later is in the
-- journal's segments beside this file and is replayed at open. Every row is written by the flusher, in one transaction with
-- `applied_lsn`, so the database alone is always a consistent (older) filesystem.

-- One row; `id` is always 1.
create table meta (
    id integer primary key check (id = 1),
    -- 16 random bytes made with the database; every journal segment carries them, so that segments cannot be mixed up.
    fs_id blob not null check (length(fs_id) = 16),
    -- The last journal record that these tables contain.
    applied_lsn integer not null,
    -- The high-water mark of inode numbers: numbers from here on were never given out. A number is never used twice.
    next_ino integer not null,
    -- The same for directory cookies (positions in a listing).
    next_cookie integer not null,
    -- The same for the sequence numbers of intents.
    next_seq integer not null,
    -- 1 when the filesystem was changed while intents were not recorded (`--no-sync`): the next synced open must name every path.
    unsynced integer not null default 0
) strict;

-- A file, folder, symlink or special file. Inode 1 is the root. A row with nlink 0 is a file that was unlinked while it was
-- open, or a download that has no name yet; it is removed at the next open.
create table inode (
    -- Below 2^39, so that (ino << 24 | index) is a positive 64-bit integer.
    ino integer primary key check (ino between 1 and 549755813887),
    -- st_mode: type and permission bits.
    mode integer not null,
    uid integer not null,
    gid integer not null,
    -- Names for a file; 2 + subfolders for a folder.
    nlink integer not null check (nlink >= 0),
    -- Bytes of a file; length of a symlink's target; 0 otherwise.
    size integer not null check (size >= 0),
    -- Nanoseconds since the epoch.
    atime_ns integer not null,
    mtime_ns integer not null,
    ctime_ns integer not null,
    -- Device number of a device node; 0 otherwise.
    rdev integer not null default 0,
    -- The folder a folder stands in (`..`); for other types the folder of the first or latest name, as a hint only.
    parent integer not null,
    -- Counts changes of the contents; never goes back.
    version integer not null,
    -- Where a symlink points, as given; null for other types.
    target blob
) strict;
create index inode_unlinked on inode (ino) where nlink = 0;

-- A name in a folder.
create table dentry (
    parent integer not null,
    -- 1 to 255 bytes without '/' and NUL, as the kernel gave them.
    name blob not null check (length(name) between 1 and 255),
    ino integer not null,
    -- Position in listings: unique in the whole filesystem, grows with creation. What replaces a name, and a rename inside of
    -- a folder, takes the position over.
    cookie integer not null,
    primary key (parent, name)
) strict, without rowid;
-- The names of an inode: what a write to a hard-linked file, and every path, is found by.
create index dentry_by_ino on dentry (ino);

-- Contents in pieces of 128 KiB. A missing row is a hole; a shorter row is followed by zeros up to the next chunk or the end.
create table chunk (
    -- ino << 24 | index: the chunks of a file are one range of rowids.
    key integer primary key,
    data blob not null check (length(data) between 1 and 131072)
) strict;

-- Extended attributes.
create table xattr (
    ino integer not null,
    name blob not null,
    value blob not null,
    primary key (ino, name)
) strict, without rowid;

-- Notes to the sync engine that it has not acknowledged yet (see `fs.types.Intent`).
create table intent (
    seq integer primary key,
    kind text not null check (kind in ('put', 'delete', 'move')),
    -- Absolute in the mount, raw bytes.
    path blob not null,
    -- Where a move came from; null otherwise.
    source blob
) strict;
