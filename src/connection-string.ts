import { ConfigError } from "./errors.ts";

/** The options with which `pg` finds a database. */
export type ConnectionConfig = { readonly connectionString: string } | { readonly database: string };

const schemes = ["postgres", "postgresql", "socket"];
const shape = "it should look like postgres://user:password@host:5432/database, or be the name of a database";

/**
 * Reads what people write for a database: a URL, the folder of a socket, or a bare name, which is a database on the default host
 * (`PGHOST`, or this machine). The text may hold a password, so no error repeats it.
 */
export function readConnectionString(text: string): ConnectionConfig {
  if (text.startsWith("/")) return { connectionString: text };
  if (/^(["']).*\1$/.test(text)) {
    throw new ConfigError(`The connection string begins and ends with a quote; leave the quotes out: ${shape}.`);
  }
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(text) ?? [];
  if (scheme !== undefined) {
    if (schemes.includes(scheme.toLowerCase())) return { connectionString: text };
    throw new ConfigError(`The connection string starts with '${scheme}:'; ${shape}.`);
  }
  if (/^[^\s:/@?=&]+$/.test(text)) return { database: text };
  if (/\w\s*=/.test(text) && !/[/@?]/.test(text)) {
    throw new ConfigError(`The connection string is a list of keywords (host=… dbname=…); ${shape}.`);
  }
  throw new ConfigError(`The connection string is neither a URL nor the name of a database; ${shape}.`);
}
