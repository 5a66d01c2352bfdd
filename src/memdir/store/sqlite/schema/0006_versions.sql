-- Former contents of documents, kept for a while. Each row holds one reference to its blob.

create table document_version (
    id integer primary key autoincrement,         -- the version's number; never used again
    container_id integer not null references container (id) on delete cascade,
    document_id text not null,                    -- whose content it was; the document may be gone
    path text,                                    -- where the document stood then
    kind text not null check (kind in ('file', 'symlink')),
    custom_id text,
    metadata text not null,                       -- JSON, as the document had it
    content_hash text not null,
    size_bytes integer not null,
    mode integer not null,
    mtime_ns integer not null,
    revision integer not null,                    -- of the document when it had this content
    reason text not null check (reason in ('replaced', 'deleted')),
    ended_at_ms integer not null                  -- when it ceased to be the content
) strict;

create index document_version_of_document on document_version (document_id, id);
create index document_version_by_path on document_version (container_id, path);
create index document_version_by_age on document_version (container_id, ended_at_ms);
create index document_version_by_hash on document_version (content_hash);
