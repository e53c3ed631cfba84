import type { Limit } from "../../../index.ts";
import { type LimitId, limitKinds } from "../../contract.ts";
import type { DashboardContext } from "../context.ts";
import { describeLimit } from "../pages/audit.ts";
import { Fields } from "../read-fields.ts";
import { badRequest, Refusal } from "../refusal.ts";
import type { Action } from "./action.ts";

interface Target extends LimitId {
  readonly key?: string;
}

const targetFields = ["name", "kind", "path", "key"];

export const setLimit: Action = (context, body) => {
  const fields = new Fields(body, [...targetFields, "limit", "weight"]);
  const target = readTarget(fields);
  const limit = fields.optionalInteger("limit", 0, 1_000_000);
  const weight = fields.optionalInteger("weight", 1, 1_000);
  const change = { ...(limit !== undefined && { limit }), ...(weight !== undefined && { weight }) };
  const said = Object.entries(change).map(([name, value]) => `${name} ${value.toLocaleString("en")}`);
  if (said.length === 0) throw badRequest("Say what to set: 'limit' or 'weight'.");
  return {
    target: { ...target, ...change },
    async run() {
      await expectLimit(context, target);
      await context.utils.setLimit(target.name, { ...toLibrary(target), ...change });
      return { changed: 1, message: `Set ${describeLimit(target, context.redact)}: ${said.join(", ")}.` };
    },
  };
};

export const clearLimit: Action = (context, body) => {
  const target = readTarget(new Fields(body, targetFields));
  return {
    target: { ...target },
    async run() {
      await expectLimit(context, target);
      const wasSet = await context.utils.clearLimit(target.name, toLibrary(target));
      const message = wasSet
        ? `Took back the change of ${describeLimit(target, context.redact)}.`
        : `Nothing was changed of ${describeLimit(target, context.redact)}.`;
      return { changed: wasSet ? 1 : 0, message };
    },
  };
};

function readTarget(fields: Fields): Target {
  const name = fields.text("name", 128);
  const kind = fields.oneOf("kind", limitKinds);
  const path = fields.texts("path", 100);
  if (path === undefined) throw badRequest("'path' must be a list of texts; it is empty for a limit without a key.");
  if (!fields.has("key")) return { name, kind, path };
  if (path.length === 0) throw badRequest("A limit without a path has no keys.");
  // Jobs without a key have the key "".
  return { name, kind, path, key: fields.optionalText("key") ?? "" };
}

/** The library would make a limit that is not there; here, only what is shown can be changed. */
async function expectLimit({ utils }: DashboardContext, { name, kind, path }: Target): Promise<void> {
  const isMeant = (limit: Limit): boolean =>
    limit.name === name && limit.kind === kind && JSON.stringify(limit.path) === JSON.stringify(path);
  if (!(await utils.listLimits()).some(isMeant)) throw new Refusal("not-found", "There is no such limit.");
}

function toLibrary({ kind, path, key }: Target): Pick<Target, "kind" | "key"> & { path?: readonly string[] } {
  return { kind, ...(path.length > 0 && { path }), ...(key !== undefined && { key }) };
}
