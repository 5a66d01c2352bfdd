-- What a conflict was about, and whether somebody said that both sides are to stay.
alter table conflict add column base_revision integer not null default 0;
alter table conflict add column remote_revision integer not null default 0;
alter table conflict add column settled integer not null default 0;
-- Copies that other machines made are ordinary files; their names tell: ' (conflict ' as bytes.
create index base_conflicts on base (path) where instr(path, X'2028636f6e666c69637420') > 0;
-- Since when a rename waits: wall clock, for people.
alter table move add column first_seen_ms integer not null default 0;
