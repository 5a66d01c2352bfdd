alter table memory add column is_embedded integer not null default 0;
comment on column memory.is_embedded is '0: vectors are still to be made';
create index memory_to_embed on memory (id) where is_embedded = 0;

create table memory_vector (
    model_id integer not null references vector_model (id),
    memory_id text collate "C" not null references memory (id) on delete cascade,
    org_id text collate "C" not null default acting_org(),
    container_id bigint not null,
    vector bytea not null,
    primary key (model_id, memory_id)
);
alter table memory_vector alter column vector set storage external;
comment on table memory_vector is 'Memories are found by their meaning, as passages are: a vector of each by every model';
comment on column memory_vector.model_id is 'Who made it';
comment on column memory_vector.memory_id is 'Of which memory';
comment on column memory_vector.container_id is 'Of the memory';
comment on column memory_vector.vector is 'float16, little endian, L2-normalised';
create index memory_vector_of_memory on memory_vector (memory_id);
call behind_container_wall('memory_vector');
