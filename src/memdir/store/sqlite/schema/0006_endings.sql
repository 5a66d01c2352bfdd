-- By what a fact holds no more: one statement may end several.

-- Id of the memory that took its place, or says that it is over; null: nothing did.
alter table memory add column ended_by text;
update memory set ended_by = (
    select n.id from memory n where n.parent_id = memory.id and n.relation in ('updates', 'contradicts')
    order by n.valid_from_ms, n.id limit 1
) where is_latest = 0;
create index memory_ended_by on memory (ended_by) where ended_by is not null;

-- What a memory that went had ended is ended by what ended that one; or it holds again, if a document still says it.
drop trigger memory_gone;
create trigger memory_gone after delete on memory begin
    update memory set ended_by = old.ended_by, is_latest = old.ended_by is null
        and exists (select 1 from memory_source s where s.memory_id = memory.id and s.stands = 1)
    where ended_by = old.id;
    update memory set parent_id = old.parent_id where parent_id = old.id;
    update container set profile_version = profile_version + 1 where id = old.container_id;
end;
