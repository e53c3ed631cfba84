import { beforeEach, expect, test, vi } from "vitest";

/*
 * Secrets are compared in a time that tells nothing of them. Time is hard to assert, so this counts: every comparison goes through node's `timingSafeEqual`, over
 * texts of one length, and as many are made whatever is sent.
 */

const compared = vi.hoisted((): [number, number][] => []);
vi.mock("node:crypto", async (importOriginal) => {
  const crypto = await importOriginal<typeof import("node:crypto")>();
  const timingSafeEqual: typeof crypto.timingSafeEqual = (a, b) => {
    compared.push([a.byteLength, b.byteLength]);
    return crypto.timingSafeEqual(a, b);
  };
  return { ...crypto, timingSafeEqual };
});

const { makeGate } = await import("../../src/dashboard/server/authenticate.ts");
const { cookieNameOf, isSame, sessionOf } = await import("../../src/dashboard/server/secrets.ts");

beforeEach(() => {
  compared.length = 0;
});

const token = "0123456789abcdef-token";
const other = "another-token-of-another-length";
const basic = (text: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(text).toString("base64")}`,
});
const bearer = (text: string): Record<string, string> => ({ authorization: `Bearer ${text}` });
const session = (text: string): Record<string, string> => ({ cookie: `${cookieNameOf(token)}=${text}` });

const passwords = makeGate({
  auth: {
    basic: [
      { username: "ann", password: "correct horse" },
      { username: "bob", password: "battery staple and more" },
    ],
  },
});
const tokens = makeGate({ auth: { bearer: [{ token }, { token: other, name: "bob" }] } });

/** Each kind of secret: what is right, and what is wrong in its first or last character, its length, or altogether. */
const kinds: [string, typeof passwords, Record<string, string>, Record<string, string>[], number][] = [
  [
    "a name and a password",
    passwords,
    basic("ann:correct horse"),
    ["ann:correct horsf", "bnn:correct horse", "ann:correct horse ", "ann:correct", "ann:", "x", "ä".repeat(9_000)].map(
      basic,
    ),
    2,
  ],
  [
    "a token in a header",
    tokens,
    bearer(token),
    [`${token}x`, token.slice(0, -1), `x${token.slice(1)}`, token.toUpperCase(), "x", "x".repeat(9_000)].map(bearer),
    4,
  ],
  [
    "a session",
    tokens,
    session(sessionOf(token)),
    [sessionOf(other), sessionOf(token).slice(1), `${sessionOf(token)}0`, token, "x", "x".repeat(9_000)].map(session),
    4,
  ],
];

test.each(kinds)("%s: as many comparisons of equal length, whatever is sent", async (_, gate, right, wrong, each) => {
  const admits = async (headers: Record<string, string>): Promise<boolean> => {
    compared.length = 0;
    const request = new Request("http://localhost/", { headers });
    const isIn = await gate.admit({ request }).then(
      () => true,
      () => false,
    );
    expect(compared).toEqual(Array.from({ length: each }, () => [32, 32]));
    return isIn;
  };
  expect(await admits(right)).toBe(true);
  for (const headers of [...wrong, {}]) expect([headers, await admits(headers)]).toEqual([headers, false]);
});

test("a token in the form or the address: the same", () => {
  for (const [given, isIn] of [
    [token, true],
    [other, true],
    [`${token}x`, false],
    [token.slice(1), false],
    ["", false],
    ["x".repeat(9_000), false],
  ] as const) {
    compared.length = 0;
    expect([given, tokens.signIn(given, false) !== undefined]).toEqual([given, isIn]);
    expect(compared).toEqual([
      [32, 32],
      [32, 32],
    ]);
  }
});

test("two secrets are the same if they are, of whatever length", () => {
  const texts = ["", "a", "b", "aa", "secret", "secret ", "Secret", "ä", "a\u0308", "x".repeat(100_000)];
  for (const a of texts) for (const b of texts) expect([a, b, isSame(a, b)]).toEqual([a, b, a === b]);
  expect(compared).toHaveLength(texts.length ** 2);
});
