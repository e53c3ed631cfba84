import { fileURLToPath } from "node:url";

// Hathi needs nothing here. In this repository the package is a link to two folders up, so that is the root.
export default { turbopack: { root: fileURLToPath(new URL("../..", import.meta.url)) } };
