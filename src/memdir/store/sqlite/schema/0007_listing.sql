-- Pages of documents in the order of their making or of their last change: the index holds all that finding a page needs, so
-- that the rows of pages before it are never read.
drop index document_by_update;
create index document_by_creation on document (container_id, created_at_ms, id) where kind = 'file';
create index document_by_update on document (container_id, updated_at_ms, id) where kind = 'file';
