import { readFile } from "node:fs/promises";
import type { ParsedCronItem } from "./cron-item.ts";
import { parseCrontab } from "./parse-crontab.ts";

/** The items of a crontab file; none if there is no such file. */
export async function readCrontab(path: string): Promise<ParsedCronItem[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return parseCrontab(text, { file: path });
}
