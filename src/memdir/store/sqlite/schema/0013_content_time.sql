-- Since when a content is, or was, the content: what stood at a moment can be asked for.
alter table document add column content_at_ms integer not null default 0;        -- 0: older than this column
alter table document_version add column began_at_ms integer not null default 0;  -- 0: older than this column
alter table document_version add column ended_seq integer not null default 0;    -- changes after this number do not concern it; 0: as above
create index change_moves on change (container_id, seq) where kind = 'move';
