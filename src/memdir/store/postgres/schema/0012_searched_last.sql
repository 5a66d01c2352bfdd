-- Files that are found by words only, and behind everything else. The meaning is that of
-- store/sqlite/schema/0020_searched_last.sql.

alter table document add column searched_last text;
