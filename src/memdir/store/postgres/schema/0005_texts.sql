-- Files that have a text beside them: the index of store/sqlite/schema/0005_texts.sql.

create index document_with_text on document (container_id, path) where transcription is not null;
