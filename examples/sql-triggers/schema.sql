create schema if not exists example_triggers;

create table if not exists example_triggers.users (
  id bigint generated always as identity primary key,
  email text not null
);

-- Whoever may insert a user need not be allowed to add jobs: the function runs with the rights of its owner.
create or replace function example_triggers.welcome_user() returns trigger as $$
begin
  perform graphile_worker.add_job(
    'welcome-user',
    json_build_object('id', new.id, 'email', new.email),
    queue_name := 'mails',
    job_key := 'welcome-user:' || new.id
  );
  return new;
end;
$$ language plpgsql volatile security definer set search_path = pg_catalog, pg_temp;

create or replace trigger welcome_user
  after insert on example_triggers.users
  for each row execute function example_triggers.welcome_user();
