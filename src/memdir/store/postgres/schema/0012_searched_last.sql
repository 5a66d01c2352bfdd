-- Files that are found by words only, and behind everything else. The meaning is that of
-- store/sqlite/schema/0020_searched_last.sql.

alter table document add column searched_last text;
comment on column document.searched_last is
    'null; ''generated'': a tool wrote it; ''ignored'': an ignore file names it; then it is found by words, behind everything else';
