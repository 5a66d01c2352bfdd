-- Files that have a text beside them: an exact search looks into these, too.

create index document_with_text on document (container_id, path) where transcription is not null;
