import { requestHeader } from "../contract.ts";
import { Refusal } from "./refusal.ts";

/**
 * Refuses a change that a page of another site asks for. Browsers say where a request comes from in `Sec-Fetch-Site`, which no page can change and
 * no proxy has to know of; those that do not say it send `Origin`, which must be the host that they asked.
 */
export function checkSite({ headers }: Request): void {
  const site = headers.get("sec-fetch-site");
  if (site !== null) {
    if (site === "same-origin" || site === "none") return;
    throw new Refusal("forbidden", "This request comes from another site.");
  }
  const origin = headers.get("origin");
  if (origin === null) return;
  // A proxy may change the host, and then says which one was asked; a page of another site cannot say it.
  const hosts = [headers.get("host"), headers.get("x-forwarded-host")?.split(",")[0]?.trim()];
  if (!hosts.some((host) => host && (origin === `https://${host}` || origin === `http://${host}`))) {
    throw new Refusal("forbidden", "This request comes from another site.");
  }
}

/** A form of another site cannot send this header, and a script of another site may not. */
export function checkHeader({ headers }: Request): void {
  if (headers.get(requestHeader) === null) {
    throw new Refusal("forbidden", `A change needs the header '${requestHeader}: 1'.`);
  }
}
