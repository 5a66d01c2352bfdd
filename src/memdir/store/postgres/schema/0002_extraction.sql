-- The text of files that are none: the tables and columns of store/sqlite/schema/0002_extraction.sql.

create table extraction (
    org_id text collate "C" not null default acting_org(),
    content_hash text collate "C" not null,
    version integer not null,
    kind text not null,
    media_type text not null,
    title text not null,
    text bytea,
    size_bytes bigint not null,
    error text,
    needs text not null default '',
    at_ms bigint not null,
    primary key (org_id, content_hash),
    foreign key (org_id, content_hash) references blob (org_id, hash) on delete cascade
);
alter table extraction alter column text set storage external;  -- packed already
comment on table extraction is 'What was read out of some contents, or why nothing could be. Goes with the contents';
comment on column extraction.content_hash is 'SHA-256 of the contents';
comment on column extraction.version is 'Of the extractors; an older one is read again when its turn comes';
comment on column extraction.kind is 'pdf, office, web, mail, image, audio, video, archive: in the name beside';
comment on column extraction.media_type is 'As the content says';
comment on column extraction.title is 'What the file calls itself; may be empty';
comment on column extraction.text is 'As it stands beside the file from its second field on, by zlib; null: it failed';
comment on column extraction.size_bytes is 'Of the text, unpacked';
comment on column extraction.error is 'Why it could not be read, and what to do';
comment on column extraction.needs is 'ocr, speech: an engine that was not there; read again when it is';
comment on column extraction.at_ms is 'When';
call behind_wall('extraction');

alter table document add column transcription text, add column sibling_version bigint not null default 0;
comment on column document.transcription is 'Null: no text stands beside it. Else its kind, or error';
comment on column document.sibling_version is 'Number of the last change of what stands beside it; 0: none';
create index document_by_sibling on document (container_id, sibling_version) where sibling_version > 0;
alter table container add column siblings_version bigint not null default 0;
comment on column container.siblings_version is 'Number of the last change of any text beside a file in it';

alter table job drop constraint job_kind_check;
alter table job add constraint job_kind_check check (kind in ('index', 'extract', 'embed', 'memory'));
comment on column job.kind is 'index, extract, embed or memory';
insert into job_clock (kind, priority, turn) values ('extract', 0, 0), ('extract', 1, 0);

-- What was kept and not read so far.
insert into job (org_id, document_id, kind, container_id, priority, not_before_ms, created_at_ms)
select org_id, id, 'index', container_id, 1, 0, 0 from document
where kind = 'file' and (
    media_type like 'image/%' or media_type like 'audio/%' or media_type like 'video/%' or media_type like 'application/vnd.%'
    or media_type in (
        'application/pdf', 'application/zip', 'application/gzip', 'application/octet-stream', 'application/mbox', 'message/rfc822',
        'text/html'
    )
)
on conflict (document_id, kind) do nothing;
