-- A row that stands for everything known below its path, too: what waited there when its folder was deleted.
alter table queue add column deep integer not null default 0;
-- A rename that may have been sent is never joined with a later one.
alter table move add column claimed integer not null default 0;
