import pg from "pg";
import { onTestFinished } from "vitest";
import { until } from "./wait.ts";

/** Listens on a channel; `payloads()` gives all that was sent up to now, in order. */
export async function listenTo(url: string, channel: string): Promise<{ payloads(): Promise<string[]> }> {
  const client = new pg.Client({ connectionString: url });
  const heard: string[] = [];
  client.on("notification", (message) => heard.push(message.payload ?? ""));
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`listen "${channel}"`);
  let marks = 0;
  return {
    async payloads() {
      // Notifications arrive in the order of their commits, so everything before our own mark has been heard with it.
      const mark = `mark ${++marks}`;
      await client.query("select pg_notify($1, $2)", [channel, mark]);
      await until(() => heard.includes(mark), { what: "our own notification comes back" });
      return heard.splice(0).filter((payload) => payload !== mark);
    },
  };
}
