import type { IncomingMessage } from "node:http";
import { inspect } from "node:util";
import { ConfigError, type ParsedCronItem, type TaskList, type WorkerUtilsOptions } from "../../index.ts";
import { type Permission, permissions } from "../contract.ts";

/** What a person may do beside reading: a list of permissions, or everything. */
export type Permitted = readonly Permission[] | "everything";

/** Who looks at the dashboard. */
export interface DashboardUser {
  /** Shown, and written into the audit. */
  readonly name: string;
  /** Reading only, if left out. */
  readonly can?: Permitted | undefined;
}

export interface BasicAccount {
  readonly username: string;
  readonly password: string;
  /** Everything, if left out. */
  readonly can?: Permitted | undefined;
}

export interface BearerAccount {
  readonly token: string;
  /** Shown, and written into the audit. */
  readonly name?: string | undefined;
  /** Everything, if left out. */
  readonly can?: Permitted | undefined;
}

/** Says who sends a request: a user; nothing, if the sender may not read; or an answer of your own, such as a redirect to your sign-in page. */
export type Authenticate = (
  request: Request,
  /** Where the dashboard was called by its Node handler. */
  node?: IncomingMessage,
) => DashboardUser | Response | null | undefined | Promise<DashboardUser | Response | null | undefined>;

/** How the dashboard knows who may see it. */
export type DashboardAuth =
  /** A name and a password, which the browser asks for. */
  | { readonly basic: BasicAccount | readonly BasicAccount[] }
  /** A token of 16 characters at least: in the header, or given once in the sign-in form or as `?token=`. */
  | { readonly bearer: string | BearerAccount | readonly BearerAccount[] }
  | Authenticate
  /** Your app has checked already: whoever gets here may do everything that `can` and `readOnly` allow. */
  | "host";

export interface DashboardOptions extends WorkerUtilsOptions {
  /** Who may see it. There is no default: a dashboard is closed. */
  readonly auth: DashboardAuth;
  /** What anybody may do at most; everything, if left out. */
  readonly can?: Permitted | undefined;
  /** True: no user may change anything. */
  readonly readOnly?: boolean | undefined;
  /** Where it is mounted, such as `/admin/hathi`, if that is part of the address that reaches it. Express says it by itself. */
  readonly basePath?: string | undefined;
  /** What the page calls this installation, such as `production`. */
  readonly title?: string | undefined;
  /** Parts of payloads that are never shown, as paths: `user.email`, `*.password` (any one key), `**.password` (at any depth). If left out: passwords, secrets, tokens and API keys. */
  readonly redact?: readonly string[] | undefined;
  /** Tasks that can be added with a form; payloads are checked by those that were made with `defineTask`. */
  readonly tasks?: TaskList | undefined;
  /** Recurring jobs, as `getCronItems` or `parseCrontab` gives them: so that the next runs can be shown, and runs asked for. */
  readonly cronItems?: readonly ParsedCronItem[] | undefined;
  /** The time zone of recurring jobs that name none; UTC, if left out. */
  readonly timeZone?: string | undefined;
  /** False: the schema is left as it is, and must be up to date. */
  readonly migrate?: boolean | undefined;
  /** Milliseconds after which a statement is stopped; 2,000, if left out. */
  readonly statementTimeout?: number | undefined;
}

/** The keys that are the dashboard's own; the others open the database. */
const ownKeys = [
  "auth",
  "can",
  "readOnly",
  "basePath",
  "title",
  "redact",
  "tasks",
  "cronItems",
  "timeZone",
  "migrate",
  "statementTimeout",
] as const;

/** The options that open the database. */
export function databaseOptionsOf(options: DashboardOptions): WorkerUtilsOptions {
  const rest: Record<string, unknown> = { maxPoolSize: 2, ...options };
  for (const key of ownKeys) delete rest[key];
  return rest;
}

/** Refuses what could leave the dashboard open, or what cannot be meant, before it starts. */
export function checkDashboardOptions(options: DashboardOptions): void {
  const { auth, can, basePath, redact } = options;
  if (auth === undefined || auth === null) {
    throw new ConfigError(
      "A dashboard needs 'auth', so that it is never open by mistake: { basic: { username, password } }, { bearer: token }, a function that " +
        "returns a user, or 'host' if your app has checked already who comes here.",
    );
  }
  if (typeof auth !== "function" && auth !== "host") checkAccounts(auth);
  readPermitted(can ?? "everything", "can");
  if (basePath !== undefined && (typeof basePath !== "string" || /[?#\s]/.test(basePath))) {
    throw new ConfigError(`'basePath' must be a path such as '/admin/hathi', got ${inspect(basePath)}.`);
  }
  if (redact !== undefined && !(Array.isArray(redact) && redact.every((path) => typeof path === "string"))) {
    throw new ConfigError(`'redact' must be a list of paths such as ['**.password'], got ${inspect(redact)}.`);
  }
}

function checkAccounts(auth: object): void {
  const [kind, given] = Object.entries(auth)[0] ?? [];
  const accounts: unknown[] = Array.isArray(given) ? given : [given];
  if (Object.keys(auth).length !== 1 || (kind !== "basic" && kind !== "bearer") || accounts.length === 0) {
    throw new ConfigError(
      `'auth' must be { basic: … }, { bearer: … }, a function or 'host', got an object with the keys ${inspect(Object.keys(auth))}.`,
    );
  }
  for (const account of accounts) {
    const { username, password, token, can } = (
      typeof account === "string" ? { token: account } : (account ?? {})
    ) as Partial<BasicAccount & BearerAccount>;
    if (kind === "basic" && !(isText(username, 1) && !username.includes(":") && isText(password, 8))) {
      throw new ConfigError(
        "An account of 'auth.basic' needs a 'username' (without a colon) and a 'password' of 8 characters at least.",
      );
    }
    if (kind === "bearer" && !isText(token, 16)) {
      throw new ConfigError(
        "A token of 'auth.bearer' must have 16 characters at least: make one with `openssl rand -hex 24`.",
      );
    }
    readPermitted(can ?? "everything", `auth.${kind}.can`);
  }
}

function isText(value: unknown, least: number): value is string {
  return typeof value === "string" && value.length >= least;
}

/** The permissions that a value stands for. */
export function readPermitted(can: unknown, name: string): readonly Permission[] {
  if (can === "everything") return permissions;
  const isList = Array.isArray(can) && can.every((one) => (permissions as readonly unknown[]).includes(one));
  if (isList) return can as Permission[];
  throw new ConfigError(`'${name}' must be 'everything' or a list of ${permissions.join(", ")}; got ${inspect(can)}.`);
}
