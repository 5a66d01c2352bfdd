-- What is derived from documents and can be rebuilt: passages with their words and vectors, and memories.
-- Everything here goes with its document, by foreign key and trigger, whoever deletes the document.

-- A passage of a document's text. Ids are never used again: vectors that arrive late must not meet another passage.
create table chunk (
    id integer primary key autoincrement,
    document_id text not null references document (id) on delete cascade,
    container_id integer not null,                -- of the document; kept equal by a trigger
    revision integer not null,                    -- of the document when the passage was cut
    ordinal integer not null,                     -- place in the document, from 0
    start_byte integer not null,                  -- half open, in the original bytes
    end_byte integer not null,
    start_line integer not null,                  -- from 1, both inclusive
    end_line integer not null,
    text text not null,                           -- exactly the span, decoded
    context text not null,                        -- title and headings: indexed and embedded with the text, never shown as it
    grams text not null,                          -- words that the tokenizer cannot see: CJK bigrams, parts of camelCase names
    text_hash blob not null                       -- SHA-256 of what is embedded (store/texts.py), for "never twice"
) strict;

create index chunk_of_document on chunk (document_id, ordinal);
create index chunk_of_container on chunk (container_id);
create index chunk_by_text on chunk (text_hash);

-- The words. External content: the text itself stays in chunk. Porter for English, accents folded; bm25 needs full detail.
create virtual table chunk_words using fts5 (
    text, context, grams,
    content = 'chunk', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Deleted words are removed from the index at once and not only marked (sqlite.org/fts5.html, "secure-delete").
insert into chunk_words (chunk_words, rank) values ('secure-delete', 1);

create trigger chunk_words_insert after insert on chunk begin
    insert into chunk_words (rowid, text, context, grams) values (new.id, new.text, new.context, new.grams);
end;
create trigger chunk_words_delete after delete on chunk begin
    insert into chunk_words (chunk_words, rowid, text, context, grams)
    values ('delete', old.id, old.text, old.context, old.grams);
end;

-- Embedding models by name, so that a vector row carries a small number.
create table vector_model (
    id integer primary key,
    name text not null unique
) strict;

-- One vector of one passage by one model: float16, little endian, L2-normalised.
create table chunk_vector (
    model_id integer not null references vector_model (id),
    chunk_id integer not null references chunk (id) on delete cascade,
    vector blob not null,
    lines blob,                                   -- vectors of its lines for choosing among them; packed by the model's side
    primary key (model_id, chunk_id)
) strict;

create index chunk_vector_of_chunk on chunk_vector (chunk_id);

-- What changed for those who hold vectors in memory: read from the last id they know on, pruned as it grows.
create table vector_event (
    id integer primary key autoincrement,
    container_id integer not null,
    kind text not null check (kind in ('add', 'drop', 'path')),
    chunk_id integer,                             -- of add and drop
    model_id integer,                             -- of add
    document_id text                              -- of path: the document stands elsewhere now
) strict;

create trigger vector_event_add after insert on chunk_vector begin
    insert into vector_event (container_id, kind, chunk_id, model_id)
    select container_id, 'add', id, new.model_id from chunk where id = new.chunk_id;
end;
create trigger vector_event_drop after delete on chunk begin
    insert into vector_event (container_id, kind, chunk_id) values (old.container_id, 'drop', old.id);
end;
create trigger vector_event_path after update of path on document when old.path is not new.path begin
    insert into vector_event (container_id, kind, document_id)
    select new.container_id, 'path', new.id where exists (select 1 from chunk where document_id = new.id);
end;
-- A document that changes its container takes its passages along: gone from the one, new in the other.
create trigger chunk_follows_document after update of container_id on document when old.container_id <> new.container_id begin
    insert into vector_event (container_id, kind, chunk_id)
    select old.container_id, 'drop', id from chunk where document_id = new.id;
    update chunk set container_id = new.container_id where document_id = new.id;
    insert into vector_event (container_id, kind, chunk_id, model_id)
    select new.container_id, 'add', v.chunk_id, v.model_id
    from chunk c join chunk_vector v on v.chunk_id = c.id where c.document_id = new.id;
end;

-- A fact drawn from documents. Updates do not change it: a newer one supersedes it and points back.
create table memory (
    id text primary key,
    container_id integer not null references container (id) on delete cascade,
    root_id text not null,                        -- id of the first version
    parent_id text,                               -- the memory it supersedes, extends or is derived from
    relation text check (relation in ('updates', 'extends', 'derives', 'contradicts')),
    version integer not null,                     -- 1, 2, … within root_id
    is_latest integer not null default 1,         -- 0: superseded
    is_forgotten integer not null default 0,      -- 1: out of the profile, still found when asked for
    kind text not null check (kind in ('static', 'dynamic')),
    subject text not null,
    text text not null,
    confidence real not null,
    created_at_ms integer not null,
    updated_at_ms integer not null
) strict;

create index memory_latest on memory (container_id, kind desc, updated_at_ms desc) where is_latest = 1;
create index memory_parent on memory (parent_id);

-- Provenance: where a memory was read. The oldest row that still stands is the one shown.
create table memory_source (
    id integer primary key autoincrement,
    memory_id text not null references memory (id) on delete cascade,
    document_id text not null references document (id) on delete cascade,
    revision integer not null,
    stands integer not null default 1,            -- 0: the document says something else there now
    confidence real not null,
    start_byte integer not null,
    end_byte integer not null,
    start_line integer not null,
    end_line integer not null,
    unique (memory_id, document_id)
) strict;

create index memory_source_of_document on memory_source (document_id);

-- A memory without any source goes; what it had superseded holds again if another document still says it.
create trigger memory_needs_source after delete on memory_source begin
    delete from memory
    where id = old.memory_id and not exists (select 1 from memory_source s where s.memory_id = old.memory_id);
end;
create trigger memory_gone after delete on memory begin
    update memory set is_latest = 1
    where id = old.parent_id and old.is_latest = 1 and old.relation in ('updates', 'contradicts')
      and exists (select 1 from memory_source s where s.memory_id = old.parent_id and s.stands = 1);
    update memory set parent_id = old.parent_id where parent_id = old.id;
    update container set profile_version = profile_version + 1 where id = old.container_id;
end;
