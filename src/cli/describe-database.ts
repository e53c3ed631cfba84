import { userInfo } from "node:os";

/** Names a database for people to read: `database 'shop' on db.example.com:5432`. Never contains the user or the password. */
export function describeDatabase(connectionString: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  const given = connectionString === undefined ? {} : placeIn(connectionString);
  if (!given) return "the database of the connection string";
  const database = given.database || env.PGDATABASE || given.user || env.PGUSER || userInfo().username;
  const host = given.host || env.PGHOST || "localhost";
  if (host.startsWith("/")) return `database '${database}' on the socket in ${host}`;
  return `database '${database}' on ${host}:${given.port || env.PGPORT || 5432}`;
}

interface Place {
  readonly host?: string;
  readonly port?: string;
  readonly database?: string;
  readonly user?: string;
}

/** The parts of a URL, of `/socket/folder database`, or of a bare database name: what `pg` takes. */
function placeIn(text: string): Place | undefined {
  if (text.startsWith("/")) {
    const [host = "", database = ""] = text.split(" ");
    return { host, database };
  }
  if (!text.includes(":")) return { database: text };
  try {
    const { protocol, hostname, port, pathname, username, searchParams } = new URL(text);
    if (protocol === "socket:") return { host: decodeURI(pathname), database: searchParams.get("db") ?? "" };
    return {
      host: searchParams.get("host") ?? decodeURIComponent(hostname),
      port: searchParams.get("port") ?? port,
      database: decodeURIComponent(pathname.slice(1)),
      user: decodeURIComponent(username),
    };
  } catch {
    return undefined; // something that only `pg` can read
  }
}
