-- What connects passages (store/ties.py): derived, gone with the passage or the document.

-- One row for each thing that a passage mentions (store/mentions.py): a file, an address, a number, a name. Passages from before
-- this table get theirs when they are indexed again.
create table chunk_tie (
    container_id integer not null,                -- of the passage; kept equal by a trigger
    number integer not null,                      -- of the thing: 64 bits of a hash
    chunk_id integer not null references chunk (id) on delete cascade,
    primary key (container_id, number, chunk_id)
) strict, without rowid;

create index chunk_tie_of_chunk on chunk_tie (chunk_id);

create trigger tie_follows_passage after update of container_id on chunk when old.container_id <> new.container_id begin
    update chunk_tie set container_id = new.container_id where chunk_id = new.id;
end;

-- Files by the last component of their path: a bare name in a text means a file wherever that stands.
create table document_name (
    document_id text primary key references document (id) on delete cascade,
    container_id integer not null,
    name text not null
) strict, without rowid;

create index document_by_name on document_name (container_id, name);

insert into document_name (document_id, container_id, name)
select id, container_id, substr(path, length(rtrim(path, replace(path, '/', ''))) + 1) from document
where kind = 'file' and path is not null;

create trigger document_name_insert after insert on document when new.kind = 'file' and new.path is not null begin
    insert into document_name (document_id, container_id, name)
    values (new.id, new.container_id, substr(new.path, length(rtrim(new.path, replace(new.path, '/', ''))) + 1));
end;
create trigger document_name_update after update of path, container_id, kind on document
when old.path is not new.path or old.container_id <> new.container_id or old.kind <> new.kind begin
    delete from document_name where document_id = new.id;
    insert into document_name (document_id, container_id, name)
    select new.id, new.container_id, substr(new.path, length(rtrim(new.path, replace(new.path, '/', ''))) + 1)
    where new.kind = 'file' and new.path is not null;
end;

create index memory_of_subject on memory (container_id, subject);
