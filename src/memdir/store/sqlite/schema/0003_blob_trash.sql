-- Large contents get places that are never used twice, so that deleting one cannot meet a new life of the same bytes.

-- Where the bytes of a large content are: <first two digits>/<hash>.<id>; null: in `data`. Before this column the place was
-- made of the hash alone, and stays so for those contents.
alter table blob add column place text;
update blob set place = substr(hash, 1, 2) || '/' || hash where data is null;

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
