/** Where a request leads, seen from where the dashboard is mounted. */
export interface Address {
  /** Without a slash at its beginning: `jobs/42`, `api/overview`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Leads from the address to the mount point, however a proxy has changed the beginning of the path. */
  readonly base: string;
  /** Leads from the address to itself, without its query. */
  readonly here: string;
}

/** `mount` is cut off if the path begins with it. */
export function parseAddress(url: string, mount: string): Address {
  const { pathname, searchParams } = new URL(url);
  const below = cut(pathname, mount.replace(/^\/*/, "/").replace(/\/*$/, ""));
  const last = pathname.split("/").at(-1) ?? "";
  const path = below.replace(/^\//, "");
  const depth = path.split("/").length - 1;
  // Without a slash at its end, the mount point itself is a file in the folder above.
  const base =
    below === "" && last !== "" ? `${encodeURI(decode(last)).replaceAll('"', "%22")}/` : "../".repeat(depth) || "./";
  return {
    path: decode(path),
    query: readQuery(searchParams),
    base: safe(base),
    here: safe(last === "" ? "./" : `./${last}`),
  };
}

function cut(pathname: string, mount: string): string {
  if (pathname === mount) return "";
  return pathname.startsWith(`${mount}/`) ? pathname.slice(mount.length) : pathname;
}

/** Of a name that comes twice the last counts, and NUL is none. */
function readQuery(params: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...params].map(([name, value]) => [name, value.replaceAll("\0", "\ufffd")]));
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** It goes into HTML and into a header. */
function safe(text: string): string {
  return text.replace(/["'<>&\s\\]/g, (character) => encodeURIComponent(character).replace("'", "%27"));
}
