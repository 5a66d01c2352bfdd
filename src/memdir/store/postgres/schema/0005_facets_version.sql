alter table container add column facets_version bigint not null default 0;
comment on column container.facets_version is 'Number of the last change of the metadata of any document in it';
alter table document add column facets_version bigint not null default 0;
comment on column document.facets_version is 'Number of the last change of its metadata; 0: none, or older than this column';
create index document_by_facets on document (container_id, facets_version) where facets_version > 0;
