-- Tombstones are dropped with every page of the feed, and are few among all that was agreed on.
create index base_tombstones on base (revision) where kind = '';
