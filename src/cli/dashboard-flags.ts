import type { DashboardServer, ServeDashboardOptions } from "../dashboard/server/index.ts";
import { getCronItems, getTasks, type RunnerOptions } from "../index.ts";
import { wholeNumber } from "./flags.ts";
import { UsageError } from "./usage-error.ts";
import { quietLogger } from "./with-utils.ts";

/** The variable that a token for other machines is taken from: a flag would be visible in every list of processes. */
const tokenVariable = "HATHI_DASHBOARD_TOKEN";

export interface DashboardArgs {
  readonly port: number | undefined;
  readonly host: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly title?: string | undefined;
}

/** What the flags and the environment say of a dashboard. */
export function readDashboardArgs(args: DashboardArgs, flag: string, env = process.env): ServeDashboardOptions {
  const port = wholeNumber(flag, args.port, 0, 65_535);
  const { [tokenVariable]: token } = env;
  const { host } = args;
  if (host !== undefined && !token && !/^(localhost|::1|127(\.\d+){3})$/.test(host)) {
    throw new UsageError(
      `A dashboard that listens to other machines needs a token that they sign in with: set ${tokenVariable} to 16 characters or more, for example with openssl rand -hex 24.`,
    );
  }
  if (token !== undefined && token.length < 16)
    throw new UsageError(`${tokenVariable} must have 16 characters or more.`);
  return {
    port,
    host,
    title: args.title,
    readOnly: args.readOnly,
    ...(token && { auth: { bearer: { token, name: env.USER ?? undefined } } }),
  };
}

/** Serves a dashboard that knows the tasks and the crontab of the options, as far as they can be loaded. */
export async function startDashboard(
  options: RunnerOptions,
  settings: ServeDashboardOptions,
  migrate: boolean,
): Promise<DashboardServer> {
  // A worker without it must not wait for its code.
  const { serveDashboard } = await import("../dashboard/server/index.ts");
  const logger = quietLogger();
  // A dashboard shows what there is; a task that cannot be loaded is for the worker to complain about.
  const tasks = await getTasks({ ...options, logger }).then(
    (found) => found.tasks,
    () => ({}),
  );
  const cron = await getCronItems({ ...options, logger }).catch(() => undefined);
  return serveDashboard({
    preset: { extends: [options.preset ?? {}], worker: { maxPoolSize: 2, concurrentJobs: 1 } },
    logger,
    tasks,
    cronItems: cron?.items,
    timeZone: cron?.timeZone,
    migrate,
    ...settings,
  });
}
