import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";

export interface Registry {
  readonly url: string;
  stop(): Promise<void>;
}

/** A registry in which one tarball is published; whoever asks for something else is sent to the usual registry. */
export async function startRegistry(tarball: string, manifest: { name: string; version: string }): Promise<Registry> {
  const { stdout } = await promisify(execFile)("npm", ["config", "get", "registry"]);
  const usual = stdout.trim().replace(/\/$/, "");
  const content = await readFile(tarball);
  const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  const { name, version } = manifest;
  const server = createServer((request, response) => {
    if (request.url === `/${name}.tgz`) response.end(content);
    else if (request.url === `/${name}`) response.end(JSON.stringify(packument()));
    else response.writeHead(302, { location: `${usual}${request.url}` }).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const packument = (): object => ({
    name,
    "dist-tags": { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball: `${url}/${name}.tgz`, integrity } } },
  });
  return {
    url,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
