const root = new URL(document.baseURI);

/** Where the dashboard is mounted, without a slash at the end. The server says so by the page's `<base>`, which later addresses do not change. */
export const base: string = root.pathname.replace(/\/+$/, "");

/** The part of an address below the base path; always begins with a slash. */
export function withoutBase(pathname: string): string {
  const rest = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  return rest === "" ? "/" : rest;
}
