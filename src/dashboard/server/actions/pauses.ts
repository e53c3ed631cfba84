import type { PauseTarget } from "../../../index.ts";
import type { PauseKindName, PauseTargetBody } from "../../contract.ts";
import { Fields } from "../read-fields.ts";
import { badRequest } from "../refusal.ts";
import type { Action } from "./action.ts";

const kinds: readonly PauseKindName[] = ["task", "queue", "worker", "cron", "all"];

function readTarget(fields: Fields): { readonly target: PauseTarget; readonly said: PauseTargetBody } {
  const inner = new Fields(fields.raw("target"), ["kind", "name"]);
  const kind = inner.oneOf("kind", kinds);
  if (kind === "all") {
    if (inner.has("name")) throw badRequest("A pause of everything has no name.");
    return { target: { all: true }, said: { kind } };
  }
  const name = inner.text("name", kind === "task" || kind === "queue" ? 128 : 1_000);
  return { target: { [kind]: name } as unknown as PauseTarget, said: { kind, name } };
}

const nameOf = ({ kind, name }: PauseTargetBody): string => (name === undefined ? "everything" : `${kind} '${name}'`);

export const pause: Action = ({ utils }, body, { name: by }) => {
  const fields = new Fields(body, ["target", "until", "reason"]);
  const { target, said } = readTarget(fields);
  const until = fields.optionalMoment("until");
  const reason = fields.optionalText("reason");
  if (until && until.getTime() <= Date.now()) throw badRequest("'until' must be in the future.");
  return {
    target: { ...said, ...(until && { until: until.toISOString() }), ...(reason && { reason }) },
    async run() {
      await utils.pause(target, { until, reason, by: by ?? undefined });
      return { changed: 1, message: `Paused ${nameOf(said)}.` };
    },
  };
};

export const resume: Action = ({ utils }, body) => {
  const { target, said } = readTarget(new Fields(body, ["target"]));
  return {
    target: { ...said },
    async run() {
      const wasPaused = await utils.resume(target);
      const message = wasPaused ? `Resumed ${nameOf(said)}.` : `There was no pause of ${nameOf(said)}.`;
      return { changed: wasPaused ? 1 : 0, message };
    },
  };
};
