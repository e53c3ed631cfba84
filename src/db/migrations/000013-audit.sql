-- Who changed what by hand, and how far it has come. An action has its row before it begins, so that nothing is done that is not written down; an
-- action on very many jobs reports its progress here, where every process can see it and ask it to stop.

create table graphile_worker._hathi_audit (
  id bigint generated always as identity constraint _hathi_audit_pkey primary key,
  started_at timestamptz not null default now(),
  done_by text,
  action text not null,
  -- What it was done to, and with which values.
  target jsonb not null,
  matched bigint not null default 0,
  changed bigint not null default 0,
  reported_at timestamptz not null default now(),
  -- Null while it runs.
  finished_at timestamptz,
  outcome text constraint _hathi_audit_outcome_check check (outcome in ('done', 'stopped', 'failed')),
  message text,
  stop_asked_by text
);
alter table graphile_worker._hathi_audit enable row level security;
create index _hathi_audit_by_person on graphile_worker._hathi_audit (done_by, id);
create index _hathi_audit_by_action on graphile_worker._hathi_audit (action, id);
