import nodeModule from "node:module";
import { ownUrl } from "./own-url.ts";

/** The application's own copy of an optional package; null if it has none, which is only known when one looks. */
export function requireOptional<Package>(name: string): Package | null {
  try {
    return nodeModule.createRequire(ownUrl)(name) as Package;
  } catch {
    return null;
  }
}
