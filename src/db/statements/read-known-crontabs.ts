import { shortPatienceMs, statement } from "../statement.ts";

/** A crontab entry that some process has scheduled or registered before. */
export interface KnownCrontab {
  identifier: string;
  known_since: Date;
  last_execution: Date | null;
}

export const readKnownCrontabs = statement<void, KnownCrontab>({
  name: "read_known_crontabs",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: `
    select identifier, known_since, last_execution
    from graphile_worker._private_known_crontabs`,
});
