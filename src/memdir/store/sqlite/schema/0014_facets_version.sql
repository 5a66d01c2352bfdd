-- Changes of documents' metadata are counted, so that what fulfils a condition is known without asking every document again.
alter table container add column facets_version integer not null default 0;      -- number of the last change of any metadata in it
alter table document add column facets_version integer not null default 0;       -- of its metadata; 0: none, or older than this column
create index document_by_facets on document (container_id, facets_version) where facets_version > 0;
