-- Files that the server took and does not yet search, or could not read: what `sync.push.processing` asks about. No row: all is done.
create table processing (
    path        blob primary key,
    document_id text not null,
    revision    integer not null,
    error       text                        -- null: still being processed; else why it failed
) without rowid;
create index processing_by_document on processing (document_id);
