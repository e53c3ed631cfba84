import { shortPatienceMs, statement } from "../statement.ts";

/** Remembers when entries were first seen; those already known stay as they are. */
export const registerCrontabs = statement<{ identifiers: readonly string[]; since: Date }, never>({
  name: "register_crontabs",
  patienceMs: shortPatienceMs,
  values: ({ identifiers, since }) => [identifiers, since],
  text: `
    insert into graphile_worker._private_known_crontabs (identifier, known_since)
    select distinct identifier, $2::timestamptz
    from unnest($1::text[]) as identifier
    order by identifier
    on conflict do nothing`,
});
