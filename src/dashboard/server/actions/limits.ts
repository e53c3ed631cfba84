import { Fields } from "../read-fields.ts";
import { Refusal } from "../refusal.ts";
import type { Action } from "./action.ts";

const missing = (): never => {
  throw new Refusal("not-found", "There is no limit of this name.");
};

export const setLimit: Action = (_desk, body) => {
  const fields = new Fields(body, ["name", "key", "concurrency", "rate"]);
  const name = fields.text("name", 128);
  const key = fields.optionalText("key");
  return { target: { name, ...(key !== undefined && { key }) }, run: async () => missing() };
};

export const clearLimit: Action = (_desk, body) => {
  const fields = new Fields(body, ["name", "key"]);
  const name = fields.text("name", 128);
  const key = fields.optionalText("key");
  return { target: { name, ...(key !== undefined && { key }) }, run: async () => missing() };
};
