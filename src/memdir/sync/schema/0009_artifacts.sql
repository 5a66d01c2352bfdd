-- Folders that stay on this machine because tools made them and can make them again (sync/artifacts.py), as they were met.
create table artifact (
    path blob primary key,                        -- of the folder
    reason text not null                          -- what it is, in words
) strict, without rowid;
