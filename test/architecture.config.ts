import { defineConfig } from "vitest/config";

// Without the database, so that the check is quick.
export default defineConfig({ test: { include: ["test/architecture.test.ts"] } });
