import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { answer } from "./answers.ts";
import { readAppFiles } from "./app-files.ts";

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  woff2: "font/woff2",
  webmanifest: "application/manifest+json",
};

interface Asset {
  readonly content: Buffer<ArrayBuffer>;
  readonly etag: string;
  compressed?: Promise<Buffer<ArrayBuffer>>;
}

/** The browser's part of the dashboard. */
export class Assets {
  #assets: Map<string, Asset> | undefined;

  /** The page, for an address that is so many folders below the mount point. */
  page(base: string): Response {
    const html =
      this.#find("index.html")?.content.toString("utf8") ?? "<!doctype html><title>Hathi</title><head><!--base-->";
    return answer(html.replace("<!--base-->", `<base href="${base}">`), "text/html; charset=utf-8");
  }

  /** A file; undefined if there is none of this name. */
  async file(name: string, { headers }: Request): Promise<Response | undefined> {
    const asset = name === "index.html" ? undefined : this.#find(name);
    if (!asset) return undefined;
    // A name with a hash never changes its content.
    const cache = /-[0-9a-z_-]{8,}\./i.test(name) ? "private, max-age=31536000, immutable" : "private, no-cache";
    const kept = { "cache-control": cache, etag: asset.etag, vary: "accept-encoding" };
    const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
    if (headers.get("if-none-match") === asset.etag) return answer(null, type, { status: 304, headers: kept });
    const isText = /^(text|image\/svg)/.test(type);
    if (!isText || !/\bgzip\b/.test(headers.get("accept-encoding") ?? ""))
      return answer(asset.content, type, { headers: kept });
    asset.compressed ??= promisify(gzip)(asset.content) as Promise<Buffer<ArrayBuffer>>;
    return answer(await asset.compressed, type, { headers: { ...kept, "content-encoding": "gzip" } });
  }

  #find(name: string): Asset | undefined {
    this.#assets ??= new Map(
      readAppFiles().map(({ name: file, base64 }) => {
        const content = Buffer.from(base64, "base64");
        return [file, { content, etag: `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"` }];
      }),
    );
    return this.#assets.get(name);
  }
}
