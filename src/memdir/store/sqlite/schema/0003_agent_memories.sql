-- Where a memory is from and how far it may be trusted, what only waits to be kept, and which project is which.

-- JSON object: who stored it, whether it may be given unasked, when it was last confirmed, how often it was said.
alter table agent_memory add column provenance text not null default '{}';
-- 1: it lies in an inbox, and is no memory before somebody keeps it.
alter table agent_memory add column is_proposed integer not null default 0;
create index agent_memory_proposed on agent_memory (container_id, created_at_ms, number) where is_proposed = 1;

drop trigger agent_memory_changed;
create trigger agent_memory_changed after update of content, tags, project, created_at_ms, container_id, is_proposed
on agent_memory begin
    insert into agent_event (container_id, number) values (new.container_id, new.number);
    insert into agent_event (container_id, number)
    select id, old.number from container where id = old.container_id and id <> new.container_id;
end;

-- What a project is known by, and the folder of its memories.
create table agent_project (
    container_id integer not null references container (id) on delete cascade,
    key text not null,                            -- remote:github.com/acme/api, root:COMMIT, folder:DIGEST, name:NAME
    project text not null,
    primary key (container_id, key)
) strict, without rowid;
create index agent_project_by_folder on agent_project (container_id, project);

-- Facts that former rules made of documents are made again: most were none.
insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms)
select d.id, 'memory', d.container_id, 1, 0, 0 from document d
where exists (select 1 from memory_source s where s.document_id = d.id)
on conflict (document_id, kind) do nothing;
