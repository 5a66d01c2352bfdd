-- Drawn for each change: a store that was restored, or whose files were put back, draws others for the same numbers.
alter table change add column token text not null default ''; -- empty for what is older than this column
