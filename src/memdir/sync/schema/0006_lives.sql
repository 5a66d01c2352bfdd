-- Numbers of the feed with the token of the change, for `sync.pull.epochs`: at most 64, thinner towards the beginning.
create table mark (
    seq   integer primary key,
    token text not null
);

-- Missing at the server, and not deleted here before somebody says so. 1: a comparison within one life of the server; 2: the
-- server was wiped or restored. Any new agreement on the path begins with 0.
alter table base add column held integer not null default 0;
create index base_held on base (path) where held != 0;
