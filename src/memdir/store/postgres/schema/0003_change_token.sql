alter table change add column token text collate "C" not null default '';
comment on column change.token is
    'Drawn for each change: a store that was restored draws others for the same numbers. Empty for what is older than this column';
