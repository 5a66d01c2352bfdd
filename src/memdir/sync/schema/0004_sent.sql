-- What was sent and not answered for sure, by the path at the server. It is apart from the queue, because the file may change, move
-- or go before the answer is known, and more than one try may be open. `on_revision` is what stood there when it was sent (0:
-- nothing): a change of the server with a greater number decides it, either as this very content or against it.
create table sent (
    id           integer primary key autoincrement,
    path         blob not null,
    kind         text not null,
    content_hash text not null,
    mode         integer not null,
    on_revision  integer not null
);
create index sent_by_path on sent (path);
insert into sent (path, kind, content_hash, mode, on_revision)
    select path, 'file', sent_hash, sent_mode, 0 from queue where sent_hash is not null and sent_hash != '';
alter table queue drop column sent_hash;
alter table queue drop column sent_mode;
