-- Behind row level security an index on an expression is not used, unless its function is leakproof: `substr` is not, `=` is.
drop index memory_by_text;
create index memory_by_text on memory using hash (text) where is_latest = 1;
create index document_version_deleted on document_version (container_id, id) where reason = 'deleted';
