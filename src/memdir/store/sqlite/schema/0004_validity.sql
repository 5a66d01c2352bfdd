-- Since when a fact is so: what is written down later about an earlier day does not take the place of what holds now.

-- The day that the statement is of: by its line, its document's date, else when it was written down.
alter table memory add column said_at_ms integer not null default 0;
-- Since when it is so: the day that its words name, else said_at_ms.
alter table memory add column valid_from_ms integer not null default 0;
update memory set said_at_ms = created_at_ms, valid_from_ms = created_at_ms;
