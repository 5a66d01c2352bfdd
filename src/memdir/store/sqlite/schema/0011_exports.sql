-- Contents that an export under way still reads: one reference each. Rows go when it ends, or when their time is over.
create table export_hold (
    export_id text not null,
    org_id text not null,
    content_hash text not null,
    until_ms integer not null,                    -- whoever holds longer than that is taken for dead
    primary key (export_id, content_hash)
) strict, without rowid;
