-- The text first: with the container first a compacted database took this index for listings, and sorted all memories.
drop index memory_by_text;
create index memory_by_text on memory (substr(text, 1, 64), container_id) where is_latest = 1;
create index document_version_deleted on document_version (container_id, id) where reason = 'deleted';
