-- History may begin later than at the first change: it is pruned by age, or begins anew when it was damaged.

alter table container add column first_seq integer not null default 1; -- number of the first change that is still told
