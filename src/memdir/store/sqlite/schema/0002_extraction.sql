-- The text of files that are none (PDF, office, mail, web, pictures, recordings, archives) is read once for the same bytes, kept,
-- and told to those who show it beside the file.

-- What was read out of some contents, or why nothing could be. Goes with the contents.
create table extraction (
    content_hash text primary key references blob (hash) on delete cascade,
    version integer not null,                     -- of the extractors; an older one is read again when its turn comes
    kind text not null,                           -- pdf, office, web, mail, image, audio, video, archive: in the name beside
    media_type text not null,                     -- as the content says
    title text not null,
    text blob,                                    -- as it stands beside the file from its second field on: zlib; null: failed
    size_bytes integer not null,                  -- of the text, unpacked
    error text,                                   -- why it could not be read, and what to do
    needs text not null default '',               -- ocr, speech: an engine that was not there; read again when it is
    at_ms integer not null
) strict, without rowid;

-- Null: no text stands beside it. Else its kind, or 'error'.
alter table document add column transcription text;
-- Number of the last change of what stands beside it; 0: none.
alter table document add column sibling_version integer not null default 0;
create index document_by_sibling on document (container_id, sibling_version) where sibling_version > 0;
-- Number of the last change of any text beside a file in it.
alter table container add column siblings_version integer not null default 0;

-- A new kind of work: reading a document in a process apart.
create table job_with_extraction (
    document_id text not null references document (id) on delete cascade,
    kind text not null check (kind in ('index', 'extract', 'embed', 'memory')),
    container_id integer not null references container (id) on delete cascade,
    priority integer not null,                    -- 0 interactive, 1 bulk; lower goes first
    generation integer not null default 1,        -- grows when the work changed; only the newest may end the row
    attempts integer not null default 0,
    not_before_ms integer not null,               -- back-off after a failure
    leased_until_ms integer not null default 0,   -- above now: somebody works on it
    created_at_ms integer not null,
    turn integer not null default 0,              -- place in its class: containers take turns, see store/jobs
    owner text not null default '',               -- the worker that holds the lease
    claims integer not null default 0,            -- grows with each claim; an older one may write nothing
    deaths integer not null default 0,            -- claims whose worker vanished instead of ending the work
    failed_at_ms integer,                         -- given up, stays until it is asked for again; null: alive
    reason text,                                  -- why it was given up
    primary key (document_id, kind)
) strict, without rowid;
insert into job_with_extraction select * from job;
drop table job;
alter table job_with_extraction rename to job;
create index job_next on job (kind, priority, turn, created_at_ms) where failed_at_ms is null;
create index job_last_turn on job (container_id, kind, priority, turn) where failed_at_ms is null;
create index job_failed on job (failed_at_ms) where failed_at_ms is not null;
insert into job_clock (kind, priority, turn) values ('extract', 0, 0), ('extract', 1, 0);

-- What was kept and not read so far.
insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms)
select id, 'index', container_id, 1, 0, 0 from document
where kind = 'file' and (
    media_type like 'image/%' or media_type like 'audio/%' or media_type like 'video/%' or media_type like 'application/vnd.%'
    or media_type in (
        'application/pdf', 'application/zip', 'application/gzip', 'application/octet-stream', 'application/mbox', 'message/rfc822',
        'text/html'
    )
)
on conflict (document_id, kind) do nothing;
