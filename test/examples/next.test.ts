import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { takeJourney } from "../dashboard/journey.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { examplePath, setStage } from "./kit.ts";

/* Next's packages belong to the example; scripts/test.mjs installs them. */

// A build takes ten seconds with Turbopack and half a minute with webpack, which is tried on demand; and the machine may be busy.
vi.setConfig({ testTimeout: 400_000 });

const stage = setStage();
const bundlers = process.env.HATHI_EVERY_BUNDLER ? ["--turbopack", "--webpack"] : ["--turbopack"];

test.each(bundlers)(
  "a Next app built with %s adds the job with its row, and another process runs it",
  async (bundler) => {
    const password = "correct horse battery";
    const program = stage.start("next-producer/start.mjs", { PORT: "0", DASHBOARD_PASSWORD: password }, [bundler]);
    const [, url] = await program.says(/Local: +(http:\S+)/, { withinMs: 300_000 });
    await program.says(/Ready in/);
    const signUp = (email: string): Promise<Response> =>
      fetch(`${url}/api/sign-up`, { method: "POST", body: JSON.stringify({ email }) });

    const ada = `ada${bundler}@example.com`;
    const answer = await signUp(ada);
    expect(answer.status).toBe(202);
    expect(await answer.json()).toEqual({ job: expect.stringMatching(/^\d+$/) });
    expect((await signUp(ada)).status).toBe(409);
    expect((await signUp(`bob${bundler}@example.com`)).status).toBe(202);

    await program.says(new RegExp(`worker \\d+: Welcome, ${ada}`));
    await program.says(/Welcome, bob/);
    // The dashboard's route, with a Next that takes slashes off the ends of addresses.
    const authorization = `Basic ${Buffer.from(`ops:${password}`).toString("base64")}`;
    expect((await fetch(`${url}/admin/hathi`)).status).toBe(401);
    await takeJourney(`${url}/admin/hathi`, { authorization });
    program.kill("SIGTERM");
    const { stdout, stderr } = await program.ended;
    expect(stdout).toMatch(/Compiled successfully/);
    expect(`${stdout}${stderr}`).not.toMatch(/warning/i);
    expect(stdout.match(/Welcome/g)).toHaveLength(2);
  },
);

test("the route of the dashboard is the one that the documents show", () => {
  const [route] = blocksOf(readPage("docs/dashboard.md")).filter(({ file }) => file === "route.js");
  const path = examplePath("next-producer/app/admin/hathi/[[...path]]/route.js");
  expect(readFileSync(path, "utf8")).toBe(route!.text);
});
