import type { IncomingMessage } from "node:http";
import type { Permission } from "../contract.ts";
import {
  type BasicAccount,
  type BearerAccount,
  type DashboardOptions,
  type Permitted,
  readPermitted,
} from "./options.ts";
import { Refusal } from "./refusal.ts";
import { cookieNameOf, isSame, sessionOf } from "./secrets.ts";

/** Who sends a request, and what they may do. */
export interface Caller {
  readonly name: string | null;
  readonly can: ReadonlySet<Permission>;
  /** The browser keeps a session that can be ended. */
  readonly hasSession: boolean;
}

interface Incoming {
  readonly request: Request;
  readonly node?: IncomingMessage | undefined;
}

export interface Gate {
  /** The caller, or the answer that a caller gets who is none. */
  admit(incoming: Incoming): Promise<Caller | Response>;
  /** Cookies for whoever has given a token; undefined if it is none of ours, or if there are no tokens. */
  signIn(token: string, isSecure: boolean): string | undefined;
  /** Cookies that end every session. */
  signOut(): readonly string[];
  /** A page with a form can be shown to whoever is not signed in. */
  readonly hasForm: boolean;
}

const noForm = { signIn: () => undefined, signOut: () => [], hasForm: false };

export function makeGate({ auth, can = "everything", readOnly = false }: DashboardOptions): Gate {
  const most = readOnly ? [] : readPermitted(can, "can");
  const caller = (name: string | null, permitted: Permitted, hasSession = false): Caller => {
    const own = readPermitted(permitted, "can");
    return { name, can: new Set(most.filter((one) => own.includes(one))), hasSession };
  };
  if (auth === "host") return { ...noForm, admit: async () => caller(null, "everything") };
  if (typeof auth === "function") {
    return {
      ...noForm,
      async admit({ request, node }) {
        const user = await auth(request, node);
        if (user instanceof Response) return user;
        if (typeof user !== "object" || user === null || typeof user.name !== "string") {
          throw new Refusal("sign-in", "You are not signed in.");
        }
        return caller(user.name, user.can ?? []);
      },
    };
  }
  return "basic" in auth
    ? basicGate([auth.basic].flat() as BasicAccount[], caller)
    : bearerGate(([auth.bearer].flat() as (string | BearerAccount)[]).map(toAccount), caller);
}

type MakeCaller = (name: string | null, permitted: Permitted, hasSession?: boolean) => Caller;

function toAccount(account: string | BearerAccount): BearerAccount {
  return typeof account === "string" ? { token: account } : account;
}

function basicGate(accounts: readonly BasicAccount[], caller: MakeCaller): Gate {
  return {
    ...noForm,
    async admit({ request }) {
      const [, encoded = ""] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
      const given = Buffer.from(encoded, "base64").toString("utf8");
      // All are looked at, so that the time tells nothing.
      const found = accounts.filter(({ username, password }) => isSame(given, `${username}:${password}`));
      const [account] = found;
      if (account) return caller(account.username, account.can ?? "everything");
      throw new Refusal("sign-in", "Sign in with a name and a password.", {
        "www-authenticate": 'Basic realm="Hathi", charset="UTF-8"',
      });
    },
  };
}

function bearerGate(accounts: readonly BearerAccount[], caller: MakeCaller): Gate {
  return {
    hasForm: true,
    async admit({ request }) {
      const [, token = ""] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
      const cookies = readCookies(request.headers.get("cookie") ?? "");
      const byHeader = accounts.filter((account) => isSame(token, account.token));
      const bySession = accounts.filter((account) =>
        isSame(cookies.get(cookieNameOf(account.token)) ?? "", sessionOf(account.token)),
      );
      const [account] = [...byHeader, ...bySession];
      if (account) return caller(account.name ?? null, account.can ?? "everything", byHeader.length === 0);
      throw new Refusal("sign-in", "Sign in with a token.", { "www-authenticate": 'Bearer realm="Hathi"' });
    },
    signIn(token, isSecure) {
      const [account] = accounts.filter((known) => isSame(token, known.token));
      return account && cookie(account, sessionOf(account.token), isSecure ? "; Secure" : "");
    },
    signOut: () => accounts.map((account) => cookie(account, "", "; Max-Age=0")),
  };
}

/** Without a path, it belongs to the folder of the page as the browser sees it, whatever a proxy makes of that. */
function cookie({ token }: BearerAccount, value: string, rest: string): string {
  return `${cookieNameOf(token)}=${value}; HttpOnly; SameSite=Lax${rest}`;
}

function readCookies(header: string): Map<string, string> {
  const pairs = header.split(";").flatMap((pair) => {
    const [name, value] = pair.split("=", 2).map((part) => part.trim());
    return name && value ? [[name, value] as const] : [];
  });
  return new Map(pairs);
}
