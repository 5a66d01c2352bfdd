-- Where the contents of a regular file are: 0 in `chunk` (as everything was before this step), a positive number in the plain
-- file of that number beside the database, -1 on the server only. 0 for every other type.
alter table inode add column place integer not null default 0 check (place >= -1);

-- Few files are not in chunks: finding them, and whose a plain file is, must not read the whole table.
create index inode_placed on inode (place) where place != 0;
