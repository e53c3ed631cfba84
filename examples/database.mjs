import { startEmbedded } from "@hathi/embedded";

/** The database of an example: the one that DATABASE_URL names, or an embedded server with its data in the current folder. */
export async function openDatabase() {
  const connectionString = process.env.DATABASE_URL;
  if (connectionString) return { connectionString, stop: async () => undefined };
  return await startEmbedded({ dataDir: ".hathi" });
}
