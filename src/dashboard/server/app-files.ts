import { readdirSync, readFileSync } from "node:fs";

/** A file of the browser's part. */
export interface AppFile {
  /** Relative to where the dashboard is mounted: `index.html`, `assets/app.js`. */
  readonly name: string;
  readonly base64: string;
}

/** Reads the browser's part as the build has left it. The build replaces this module with one that contains it: a bundle has no files beside it. */
export function readAppFiles(): AppFile[] {
  const folder = new URL("../../../dist/dashboard/app/", import.meta.url);
  const read = (name: string): AppFile => ({ name, base64: readFileSync(new URL(name, folder)).toString("base64") });
  return [read("index.html"), ...readdirSync(new URL("assets/", folder)).map((name) => read(`assets/${name}`))];
}
