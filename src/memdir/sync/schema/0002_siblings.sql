-- Texts beside files, by the contents of the file: shown wherever these contents are.
create table sibling (
    content_hash text primary key,
    kind         text not null,                   -- as in the sibling's name
    text_version integer not null,                -- another one for another text
    size_bytes   integer not null,                -- of the text, unpacked
    text         blob not null                    -- zlib
) strict, without rowid;
