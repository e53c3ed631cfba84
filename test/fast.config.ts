import { defineConfig, mergeConfig } from "vitest/config";
import everything from "../vitest.config.ts";
import { listFastTests } from "./support/fast-tests.ts";

// What `npm run test:fast` runs: everything without processes, browsers and other servers.
const { test, ...rest } = everything;
export default mergeConfig(defineConfig(rest), defineConfig({ test: { ...test, include: listFastTests() } }));
