import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** Whether two secrets are the same, in a time that tells nothing of either, not even its length. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

/** What a browser keeps in place of a token: it opens this dashboard and nothing else, and the token cannot be told from it. */
export function sessionOf(token: string): string {
  return createHmac("sha256", token).update("hathi dashboard session").digest("hex");
}

/** Cookies are shared by all ports of a host, so each token has its own. */
export function cookieNameOf(token: string): string {
  return `hathi_${createHmac("sha256", token).update("hathi dashboard cookie").digest("hex").slice(0, 12)}`;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
