-- What connects passages (store/ties.py): derived, gone with the passage or the document. The meaning is that of
-- store/sqlite/schema/0015_ties.sql.

create table chunk_tie (
    org_id text collate "C" not null default acting_org(),
    container_id bigint not null,
    number bigint not null,
    chunk_id bigint not null references chunk (id) on delete cascade,
    primary key (container_id, number, chunk_id)
);
comment on table chunk_tie is 'One row for each thing that a passage mentions (store/mentions.py)';
comment on column chunk_tie.container_id is 'Of the passage; kept equal by a trigger';
comment on column chunk_tie.number is 'Of the thing: 64 bits of a hash';
comment on column chunk_tie.chunk_id is 'Who mentions it';
create index chunk_tie_of_chunk on chunk_tie (chunk_id);
call behind_container_wall('chunk_tie');

create function tie_follows_passage() returns trigger language plpgsql as $$
begin
    update chunk_tie set container_id = new.container_id where chunk_id = new.id;
    return null;
end $$;
comment on function tie_follows_passage() is 'Moves what a passage mentions to another container with it';
create trigger tie_follows_passage after update of container_id on chunk for each row
    when (old.container_id <> new.container_id) execute function tie_follows_passage();

create table document_name (
    document_id text collate "C" primary key references document (id) on delete cascade,
    org_id text collate "C" not null default acting_org(),
    container_id bigint not null,
    name text collate "C" not null
);
comment on table document_name is 'Files by the last component of their path';
comment on column document_name.document_id is 'The file';
comment on column document_name.container_id is 'Of the file';
comment on column document_name.name is 'What stands behind the last slash';
create index document_by_name on document_name (container_id, name);
call behind_container_wall('document_name');

insert into document_name (document_id, org_id, container_id, name)
select id, org_id, container_id, substring(path from '[^/]*$') from document where kind = 'file' and path is not null;

create function name_document() returns trigger language plpgsql as $$
begin
    if new.path is null or new.kind <> 'file' then
        delete from document_name where document_id = new.id;
    else
        insert into document_name (document_id, org_id, container_id, name)
        values (new.id, new.org_id, new.container_id, substring(new.path from '[^/]*$'))
        on conflict (document_id) do update set container_id = excluded.container_id, name = excluded.name;
    end if;
    return null;
end $$;
comment on function name_document() is 'Keeps document_name in step with document.path';
create trigger name_document_insert after insert on document for each row execute function name_document();
create trigger name_document_update after update of path, container_id, kind on document for each row
    when (old.path is distinct from new.path or old.container_id <> new.container_id or old.kind <> new.kind)
    execute function name_document();

create index memory_of_subject on memory (container_id, subject);
