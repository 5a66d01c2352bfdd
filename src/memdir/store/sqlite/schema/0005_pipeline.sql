-- Work with an owner, turns between containers, and work that was given up but is not forgotten.

alter table job add column turn integer not null default 0;       -- place in its class: containers take turns, see store/jobs.py
alter table job add column owner text not null default '';        -- the worker that holds the lease
alter table job add column claims integer not null default 0;     -- grows with each claim; an older one may write nothing
alter table job add column deaths integer not null default 0;     -- claims whose worker vanished instead of ending the work
alter table job add column failed_at_ms integer;                  -- given up, stays until it is asked for again; null: alive
alter table job add column reason text;                           -- why it was given up

update job set turn = placed.turn
from (
    select document_id as placed_id, kind as placed_kind,
           row_number() over (partition by kind, priority, container_id order by created_at_ms, document_id) as turn
    from job
) as placed
where job.document_id = placed.placed_id and job.kind = placed.placed_kind;

drop index job_next;
create index job_next on job (kind, priority, turn, created_at_ms) where failed_at_ms is null;
create index job_last_turn on job (container_id, kind, priority, turn) where failed_at_ms is null;
create index job_failed on job (failed_at_ms) where failed_at_ms is not null;

-- The turn that each class of work has reached. Work of a container that had none joins here, not at the end and not before.
create table job_clock (
    kind text not null,
    priority integer not null,
    turn integer not null,
    primary key (kind, priority)
) strict, without rowid;

insert into job_clock (kind, priority, turn)
values ('index', 0, 0), ('index', 1, 0), ('embed', 0, 0), ('embed', 1, 0), ('memory', 0, 0), ('memory', 1, 0);
