-- The newest intent of the filesystem when this was put into the mount, or found there; 0 for what was there before any. A rename
-- that was noted earlier, and is taken in later, moved something else away.
alter table base add column since_intent integer not null default 0;
