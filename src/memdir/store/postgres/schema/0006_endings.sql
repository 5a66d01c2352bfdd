-- By what a fact holds no more: the column of store/sqlite/schema/0006_endings.sql.

alter table memory add column ended_by text collate "C";
update memory set ended_by = (
    select n.id from memory n where n.parent_id = memory.id and n.relation in ('updates', 'contradicts')
    order by n.valid_from_ms, n.id limit 1
) where is_latest = 0;
comment on column memory.ended_by is 'Id of the memory that took its place, or says that it is over; null: nothing did';
create index memory_ended_by on memory (ended_by) where ended_by is not null;

create or replace function memory_gone() returns trigger language plpgsql as $$
begin
    update memory m set ended_by = old.ended_by, is_latest = case when old.ended_by is null
        and exists (select from memory_source s where s.memory_id = m.id and s.stands = 1) then 1 else 0 end
    where m.ended_by = old.id;
    update memory set parent_id = old.parent_id where parent_id = old.id;
    update container set profile_version = profile_version + 1 where id = old.container_id;
    return null;
end $$;
comment on function memory_gone() is
    'What a memory that went had ended is ended by what ended that one; or it holds again, if a document still says it';
