import { readFile } from "node:fs/promises";
import { toError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { parseCrontab } from "./parse-crontab.ts";

export interface CrontabFile {
  readonly path: string;
  /** False for the default path, where no crontab need be. */
  readonly isNamed: boolean;
}

/** The items of a crontab file. One that is missing or cannot be read is logged and has none; one that is wrong throws. */
export async function readCrontab({ path, isNamed }: CrontabFile, logger: Logger): Promise<ParsedCronItem[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (thrown) {
    const error = toError(thrown);
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (isMissing) logger[isNamed ? "warn" : "debug"](`Failed to read crontab file '${path}'; cron is disabled`);
    else logger.error(`Failed to read crontab file '${path}': ${error.message}; cron is disabled`, { error });
    return [];
  }
  return parseCrontab(text, { file: path });
}
