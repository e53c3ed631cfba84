create schema if not exists app;
create table if not exists app.effects (
  id bigint generated always as identity, task text not null, attempt int not null, payload json not null, extra json
);
create table if not exists app.users (id int generated always as identity primary key, email text not null, visits int not null default 0);

create or replace function app.add_welcome() returns trigger as $$
begin
  perform graphile_worker.add_job(
    'users/welcome', json_build_object('id', new.id, 'email', new.email),
    queue_name := 'welcomes', max_attempts := 3, job_key := 'welcome:' || new.id, priority := 2, flags := array['mail']
  );
  return new;
end;
$$ language plpgsql volatile;
create or replace trigger add_welcome after insert on app.users for each row execute function app.add_welcome();

create or replace function app.add_visits() returns trigger as $$
begin
  perform graphile_worker.add_jobs(array(
    select (
      'count-visits', json_build_array(json_build_object('user', new.id, 'visit', visit)), null, null, 4, 'visits', null, null
    )::graphile_worker.job_spec
    from generate_series(old.visits + 1, new.visits) as visit
    limit 1
  ), false);
  return new;
end;
$$ language plpgsql volatile;
create or replace trigger add_visits after update of visits on app.users for each row execute function app.add_visits();
