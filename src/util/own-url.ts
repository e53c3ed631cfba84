import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Where this code is, to resolve packages from. A CommonJS bundle does not know; there it is the current folder. */
export const ownUrl: string = import.meta.url ?? pathToFileURL(join(process.cwd(), "package.json")).href;
