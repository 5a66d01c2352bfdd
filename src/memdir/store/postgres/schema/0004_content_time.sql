alter table document add column content_at_ms bigint not null default 0;
comment on column document.content_at_ms is 'Since when it has this content and mode; 0: older than this column';
alter table document_version add column began_at_ms bigint not null default 0;
comment on column document_version.began_at_ms is 'Since when it was the content; 0: older than this column';
alter table document_version add column ended_seq bigint not null default 0;
comment on column document_version.ended_seq is
    'Changes of the container after this number do not concern it; 0: older than this column';
create index change_moves on change (container_id, seq) where kind = 'move';
