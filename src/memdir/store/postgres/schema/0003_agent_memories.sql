-- Where memories of agents are from, and projects: the tables and columns of store/sqlite/schema/0003_agent_memories.sql.

alter table agent_memory add column provenance text not null default '{}', add column is_proposed integer not null default 0;
comment on column agent_memory.provenance is
    'JSON object: who stored it, whether it may be given unasked, when it was last confirmed, how often it was said';
comment on column agent_memory.is_proposed is '1: it lies in an inbox, and is no memory before somebody keeps it';
create index agent_memory_proposed on agent_memory (container_id, created_at_ms, number) where is_proposed = 1;

drop trigger agent_memory_changed on agent_memory;
create trigger agent_memory_changed
    after update of content, tags, project, created_at_ms, container_id, is_proposed on agent_memory
    for each row execute function agent_memory_event();

create table agent_project (
    org_id text collate "C" not null default acting_org(),
    container_id bigint not null references container (id) on delete cascade,
    key text collate "C" not null,
    project text collate "C" not null,
    primary key (container_id, key)
);
comment on table agent_project is 'What a project is known by, and the folder of its memories';
comment on column agent_project.container_id is 'Of the memories';
comment on column agent_project.key is 'remote:github.com/acme/api, root:COMMIT, folder:DIGEST, name:NAME';
comment on column agent_project.project is 'Its folder below /memory/';
create index agent_project_by_folder on agent_project (container_id, project);
call behind_container_wall('agent_project');

-- Facts that former rules made of documents are made again: most were none.
insert into job (org_id, document_id, kind, container_id, priority, not_before_ms, created_at_ms)
select d.org_id, d.id, 'memory', d.container_id, 1, 0, 0 from document d
where exists (select 1 from memory_source s where s.document_id = d.id)
on conflict (document_id, kind) do nothing;
