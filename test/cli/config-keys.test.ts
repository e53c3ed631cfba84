import { expect, test } from "vitest";
import { resolveOptions } from "../../src/cli/resolve-options.ts";
import { compileSharedOptions } from "../../src/runner/compile.ts";
import { rememberingLogger } from "../support/log.ts";
import { makeProject } from "../support/project.ts";

test("misspelt keys of a config file are reported with what may have been meant", async () => {
  const { folder } = await makeProject({
    "hathi.config.mjs": "export default { worker: { concurency: 5, recovery: { crashGrce: 1 } } };\n",
  });
  const { logger, lines } = rememberingLogger();
  const { options } = await resolveOptions({ connection: "postgres:///x" }, { logger }, {}, folder);
  compileSharedOptions(options);
  expect(lines.map(({ message }) => message)).toEqual([
    "Unknown option 'concurency' in preset.worker is ignored. Did you mean 'concurrentJobs'?",
    "Unknown option 'recovery.crashGrce' in preset.worker is ignored. Did you mean 'crashGrace'?",
  ]);
});
