/*
 * What the dashboard's server and its browser app say to each other. Every address is relative to where the dashboard is mounted; the page's
 * `<base>` points there. Moments are ISO 8601 strings in UTC, lengths of time are milliseconds, ids are strings.
 *
 * GET answers carry a page's snapshot. POST needs the header `x-hathi-dashboard: 1` and a JSON body. Errors are an `ApiError` with a matching status.
 */

export * from "./contract/actions.ts";
export * from "./contract/audit.ts";
export * from "./contract/basics.ts";
export * from "./contract/bulk.ts";
export * from "./contract/cron.ts";
export * from "./contract/errors.ts";
export * from "./contract/history.ts";
export * from "./contract/jobs.ts";
export * from "./contract/limits.ts";
export * from "./contract/live.ts";
export * from "./contract/overview.ts";
export * from "./contract/payload-form.ts";
export * from "./contract/queues.ts";
export * from "./contract/session.ts";
export * from "./contract/tasks.ts";
export * from "./contract/workers.ts";
