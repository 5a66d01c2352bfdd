-- Memories are found by their meaning, as passages are: a vector of each by every model, made in the background.
alter table memory add column is_embedded integer not null default 0;        -- 0: vectors are still to be made
create index memory_to_embed on memory (id) where is_embedded = 0;

create table memory_vector (
    model_id integer not null references vector_model (id),
    memory_id text not null references memory (id) on delete cascade,
    container_id integer not null,                -- of the memory
    vector blob not null,                         -- float16, little endian, L2-normalised
    primary key (model_id, memory_id)
) strict;

create index memory_vector_of_memory on memory_vector (memory_id);
