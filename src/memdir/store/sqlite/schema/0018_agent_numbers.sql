-- The memories of a container in the order of their numbers (the row id, which every index ends with): an index of them is read
-- so, page by page.
create index agent_memory_by_number on agent_memory (container_id);
