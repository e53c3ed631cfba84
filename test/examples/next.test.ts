import { expect, test, vi } from "vitest";
import { setStage } from "./kit.ts";

/* Next's packages belong to the example; scripts/test.mjs installs them. */

// A build takes ten seconds with Turbopack and half a minute with webpack, and the machine may be busy.
vi.setConfig({ testTimeout: 400_000 });

const stage = setStage();

test.each(["--turbopack", "--webpack"])(
  "a Next app built with %s adds the job with its row, and another process runs it",
  async (bundler) => {
    const program = stage.start("next-producer/start.mjs", { PORT: "0" }, [bundler]);
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
    program.kill("SIGTERM");
    const { stdout, stderr } = await program.ended;
    expect(stdout).toMatch(/Compiled successfully/);
    expect(`${stdout}${stderr}`).not.toMatch(/warning/i);
    expect(stdout.match(/Welcome/g)).toHaveLength(2);
  },
);
