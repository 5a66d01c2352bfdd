-- Of a file whose contents are absent (place -1), `target` is the SHA-256 of those contents: 32 bytes.
-- Which files are absent, with what contents and how large: asked before anything at the server is overwritten or deleted, and
-- counted at every start, so it must not read the table.
create index inode_absent on inode (target, size) where place = -1;
