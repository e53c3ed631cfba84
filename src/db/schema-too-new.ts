import type { ClientBase } from "pg";
import { SchemaTooNewError } from "../errors.ts";
import { checkSchemaIsKnown } from "./adopt.ts";
import { readSchemaState } from "./schema-state.ts";

/** True if this schema has a breaking migration that this version does not know. */
export async function isSchemaTooNew(client: ClientBase, schema: string): Promise<boolean> {
  const state = await readSchemaState(client, schema);
  try {
    checkSchemaIsKnown(state);
    return false;
  } catch (error) {
    if (error instanceof SchemaTooNewError) return true;
    throw error;
  }
}
