-- Statements that are bounded by what they return, whatever a container holds. The meaning is that of
-- store/sqlite/schema/0019_places.sql.

create index chunk_of_document_by_start on chunk (document_id, start_byte);

drop index memory_source_of_document;
create index memory_source_of_document on memory_source (document_id, start_byte);

drop index document_unfinished;
create index document_unfinished on document (container_id, path) where status not in ('done', 'failed');
create index document_unfinished_by_update on document (container_id, updated_at_ms, id) where status not in ('done', 'failed');
create index document_unsearchable on document (container_id, path) where status in ('queued', 'extracting', 'chunking');

create index memory_by_text on memory (container_id, substr(text, 1, 64)) where is_latest = 1;
create index memory_by_creation on memory (container_id, created_at_ms, id) where is_latest = 1;
create index memory_by_update on memory (container_id, updated_at_ms, id) where is_latest = 1;
