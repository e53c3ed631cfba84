import type { Locator, Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import type { JobActionName } from "../../src/dashboard/contract.ts";
import type { JobRow } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { complaintsOf, expectAccessible, hasBrowser, inEveryView, useBrowser, visit } from "./browser.ts";
import { makeScene } from "./scene.ts";

// A browser is slow on a machine whose cores are all busy.
vi.setConfig({ testTimeout: 240_000 });
const open = useBrowser();
const inAnHour = (): Date => new Date(Date.now() + 3_600_000);

/** Presses a button of the page, of its open dialog, or of a menu behind the dots. */
async function press(page: Page, name: string | RegExp): Promise<void> {
  const scope = (await page.locator("dialog[open]").count()) > 0 ? page.locator("dialog[open]") : page.locator("main");
  const button = scope.getByRole("button", { name, exact: true });
  const more = scope.getByRole("button", { name: "More actions" });
  await button.or(more).first().waitFor();
  if ((await button.count()) === 0) await more.click();
  await button
    .or(scope.getByRole("menuitem", { name, exact: true }))
    .first()
    .click();
}

/** All jobs that match, as a person does: one, those shown, the rest. */
async function selectAll(page: Page): Promise<void> {
  await page
    .getByRole("checkbox", { name: /Select job/ })
    .first()
    .check();
  await press(page, "Select all shown");
  await press(page, "Select all that match");
}

const told = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator(".toast").getByText(text).last().waitFor();

/** Takes back what the message with this text tells of. */
const undo = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator(".toast").filter({ hasText: text }).getByRole("button", { name: "Undo" }).last().click();

test.skipIf(!hasBrowser)("every action on a job does what its button says", async () => {
  // Of each view, two jobs stay in their slots.
  const { utils, database, url } = await makeScene({ concurrency: 10 });
  const page = await open(url);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const add = async (maxAttempts = 25): Promise<string> =>
    (await utils.addJob("held", { token: "s3cret", n: 1 }, { runAt: inAnHour(), maxAttempts })).id;
  const show = async (id: string): Promise<void> => visit(page, `jobs/${id}`);

  await inEveryView(page, async ({ width, theme }, isThorough) => {
    const moved = await add();
    await show(moved);
    await press(page, "Copy");
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(JSON.parse(await page.evaluate<string>("navigator.clipboard.readText()"))).toEqual({ token: "•••", n: 1 });
    await press(page, "Reschedule");
    await page.getByLabel("Run at", { exact: true }).fill("2035-01-02T03:04:05");
    await page.getByLabel("Priority", { exact: true }).fill("7");
    await page.getByLabel("Attempts at most", { exact: true }).fill("3");
    if (isThorough) await expectAccessible(page, "reschedule");
    await press(page, "Reschedule 1 job");
    await until(async () => (await database.job(moved))?.priority === 7);
    expect((await database.job(moved))!.max_attempts).toBe(3);
    expect((await database.job(moved))!.run_at.getFullYear()).toBe(2035);
    await undo(page, /\w/);
    await until(async () => (await database.job(moved))?.priority === 0);
    expect((await database.job(moved))!.run_at.getFullYear()).not.toBe(2035);

    await press(page, "Change priority …");
    await page.getByLabel("Priority", { exact: true }).fill("-3");
    await press(page, "Set to -3");
    await until(async () => (await database.job(moved))?.priority === -3);

    await press(page, "Run now");
    await until(async () => (await database.job(moved))?.locked_by);
    // The page learns it from the stream.
    await page.locator(".why").getByText("Running").waitFor();
    await press(page, "Cancel");
    await page.getByLabel("Reason", { exact: true }).fill("wrong tenant");
    await press(page, "Cancel 1 job");
    await until(async () => {
      const { reasons } = await utils.explainJob(moved);
      return reasons.some((reason) => reason.kind === "cancelled" && reason.reason === "wrong tenant");
    });

    const failed = await add();
    await show(failed);
    await press(page, "Fail");
    await press(page, "Fail 1 job");
    await until(async () => (await database.job(failed))?.attempts === 25);
    await page.locator(".why").getByText("Failed", { exact: true }).waitFor();
    await press(page, "Retry");
    await until(async () => (await database.job(failed))?.locked_by);

    const removed = await add();
    await show(removed);
    await press(page, "Remove");
    await press(page, "Remove 1 job");
    await until(async () => (await database.job(removed)) === undefined);

    const original = await add();
    await show(original);
    await press(page, "Duplicate …");
    const payload = page.getByLabel("Payload (JSON)", { exact: true });
    await until(async () => (await payload.inputValue()).includes('"n": 1'));
    expect(await payload.inputValue()).toContain("•••");
    const n = `${width} ${theme}`;
    await payload.fill((await payload.inputValue()).replace('"n": 1', `"n": "${n}"`));
    await page.getByLabel("Run at", { exact: true }).fill("2035-01-02T03:04:05");
    await press(page, "Add the copy");
    await page.locator("h1").getByText("held").waitFor();
    const copy = (await database.jobs()).find(({ payload }) => (payload as { n?: unknown }).n === n);
    expect(copy?.payload).toEqual({ token: "s3cret", n });
  });

  await visit(page, "audit");
  for (const action of ["Reschedule", "Run now", "Cancel", "Fail", "Retry", "Remove", "Add"]) {
    await page.locator("td .name").getByText(action, { exact: true }).first().waitFor();
  }
  expect(complaintsOf(page)).toEqual([]);
});

const json = (page: Page): Locator => page.getByLabel("Payload (JSON)", { exact: true });

/** The form as a person uses who makes mistakes, up to what it should hold. */
async function tryMistakes(page: Page, given: object): Promise<void> {
  const task = page.getByLabel("Task", { exact: true });
  await task.fill("elsewhere");
  await page.getByText("This server does not know the task or its schema").waitFor();
  await task.fill("mail/send");
  await page.getByText("The task has no schema").waitFor();
  await task.fill("order");
  const amount = page.getByLabel("amount", { exact: true });
  await amount.fill("ten");
  await page.getByRole("alert").getByText("expected number").waitFor();
  expect(await amount.getAttribute("aria-invalid")).toBe("true");
  await expectAccessible(page, "a form with a mistake");
  await press(page, "Add the job");
  await page.getByLabel("note", { exact: true }).fill("by hand");
  await page.getByLabel("size", { exact: true }).selectOption("large");
  await page.getByLabel("lines", { exact: true }).fill('[{ "sku": 7 }]');
  await page.getByRole("alert").getByText("lines[0].sku").waitFor();
  await page.getByLabel("lines", { exact: true }).fill('[{ "sku": "A" }]');
  // On its way to a number it stays as it is typed.
  await amount.fill("10.");
  await amount.press("5");
  expect(await amount.inputValue()).toBe("10.5");
  await until(async () => (await page.getByRole("alert").count()) === 0);
  await press(page, "Edit as JSON");
  expect(JSON.parse(await json(page).inputValue())).toEqual(given);
  await json(page).fill('{ "amount": "ten" ');
  await page.getByText("This is not JSON").waitFor();
  await json(page).fill('{ "amount": "ten" }');
  await page.getByRole("alert").getByText("amount: ").waitFor();
}

test.skipIf(!hasBrowser)("jobs are added with a form that checks them, paused, resumed, drained and run", async () => {
  const { utils, database, url } = await makeScene();
  const page = await open(url);
  await utils.addJob("held", {}, { queueName: "tenant-1" });
  await inEveryView(page, async ({ width, theme }, isThorough) => {
    const orders = async (): Promise<unknown[]> =>
      (await database.jobs()).filter(({ task_identifier: identifier }) => identifier === "order");
    const before = await orders();
    await visit(page, "jobs");
    await page.getByRole("link", { name: "Add a job" }).click();
    const given = { amount: 10.5, note: "by hand", size: "large", lines: [{ sku: "A" }] };
    if (isThorough) await tryMistakes(page, given);
    else await page.getByLabel("Task", { exact: true }).fill("order");
    // There is JSON to edit before the task's fields are known, and then no more.
    await page.getByRole("button", { name: /^Edit (as JSON|in fields)$/ }).waitFor();
    if ((await json(page).count()) === 0) await press(page, "Edit as JSON");
    await json(page).fill(JSON.stringify(given));
    await until(async () => (await page.getByRole("alert").count()) === 0);
    const key = `order:${width}:${theme}`;
    await page.getByLabel("Key", { exact: true }).fill(key);
    await page.getByLabel("Run at", { exact: true }).fill("2035-01-02T03:04:05");
    expect(await orders()).toEqual(before);
    await press(page, "Add the job");
    await page.locator("h1").getByText("order").waitFor();
    expect(await orders()).toMatchObject([...before, { key, payload: given }]);

    await visit(page, "tasks/mail/send");
    await press(page, "Pause task mail/send");
    await page.getByLabel("Until", { exact: true }).fill("2035-01-02T03:04");
    await page.getByLabel("Reason", { exact: true }).fill("the mail server is down");
    await press(page, "Pause this task");
    await page.locator(".banner").getByText("the mail server is down").waitFor();
    const pauses = await utils.listPauses();
    expect(pauses).toMatchObject([{ kind: "task", name: "mail/send", reason: "the mail server is down" }]);
    expect(pauses[0]!.until?.getFullYear()).toBe(2035);
    await press(page, "Resume task mail/send");
    await until(async () => (await utils.listPauses()).length === 0);
    await undo(page, "Resumed task");
    await until(async () => (await utils.listPauses()).length === 1);
    expect(await utils.listPauses()).toMatchObject([{ ...pauses[0], pausedAt: expect.anything() }]);
    await press(page, "Resume task mail/send");
    await until(async () => (await utils.listPauses()).length === 0);

    await visit(page, "queues");
    await press(page, "Pause queue tenant-1");
    await press(page, "Pause this queue");
    await page.locator("main").getByText("paused").first().waitFor();
    await undo(page, "Paused queue");
    await until(async () => (await utils.listPauses()).length === 0);

    await visit(page, "limits");
    await press(page, "Pause everything");
    await press(page, "Pause everything");
    await until(async () => (await utils.listPauses())[0]?.kind === "all");
    await page.locator("tbody").getByRole("button", { name: "Resume everything" }).click();
    await until(async () => (await utils.listPauses()).length === 0);

    await visit(page, "workers");
    await press(page, /^Drain worker/);
    await press(page, "Drain this worker");
    await page.locator("main").getByText("draining").waitFor();
    await press(page, /^Resume worker/);
    await until(async () => (await utils.listPauses()).length === 0);

    // What a worker that nobody knows holds.
    const lost = await utils.addJob("mail/send", {}, { runAt: new Date(Date.now() + 3_600_000) });
    await database.query(
      "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'ghost' where id = $1",
      [lost.id],
    );
    await visit(page, "workers");
    await press(page, "Free its jobs: ghost");
    await press(page, "Free 1 job");
    await until(async () => (await database.job(lost.id))?.locked_by === null);

    const runs = async (): Promise<number> => (await utils.listHistory({ task: "mail/send" })).entries.length;
    const ranBefore = await runs();
    await visit(page, "cron");
    await press(page, "Pause cron entry nightly");
    await press(page, "Pause this cron entry");
    await until(async () => (await utils.listPauses()).some(({ kind, name }) => kind === "cron" && name === "nightly"));
    await press(page, "Resume cron entry nightly");
    await until(async () => (await utils.listPauses()).length === 0);
    await press(page, "Run now: nightly");
    await told(page, /\w/);
    await until(async () => (await runs()) > ranBefore);

    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    const token = page.getByLabel("Token", { exact: true });
    await token.fill(new URL(url).searchParams.get("token")!);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("h1").first().waitFor();
    await token.waitFor({ state: "detached" });
  });
  expect(complaintsOf(page).filter((complaint) => !complaint.includes("401"))).toEqual([]);
});

test.skipIf(!hasBrowser)("bulk actions count first, go on in the background, and can be stopped", async () => {
  const { utils, database, url } = await makeScene({ dashboard: { statementTimeout: 60_000 } });
  const many = 602;
  await utils.addJob("invoice/pdf", {}, { maxAttempts: 1 });
  const [group] = await until(async () => {
    const groups = await utils.listErrors();
    return groups.length > 0 && groups;
  });
  const page = await open(url);

  await inEveryView(page, async ({ width, theme }, isThorough) => {
    const task = `many-${width}-${theme}`;
    await database.query(
      "select graphile_worker.add_job($1, '{}'::json, run_at => now() + interval '1 hour') from generate_series(1, $2)",
      [task, many],
    );
    await visit(page, `jobs?state=scheduled&task=${task}`);
    const boxes = page.getByRole("checkbox", { name: /Select job/ });
    await boxes.first().waitFor();
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    if (isThorough) await expectAccessible(page, "selection");
    await press(page, "Remove");
    await press(page, "Remove 2 jobs");
    await until(async () => (await utils.countJobs({ state: "scheduled", task })) === many - 2);

    await visit(page, `jobs?state=scheduled&task=${task}`);
    await boxes.first().waitFor();
    await selectAll(page);
    await press(page, "Fail");
    await page.getByRole("dialog").getByRole("button", { name: "Fail 600 jobs" }).click();
    await page.getByRole("dialog").getByText("Done: changed 600 of 600.").waitFor();
    if (isThorough) await expectAccessible(page, "bulk done");
    await press(page, "Close");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await utils.countJobs({ state: "dead", task })).toBe(many - 2);

    // The first of its chunks waits for a row that somebody holds; meanwhile it is stopped.
    const client = await database.pool.connect();
    await client.query("begin");
    await client.query(
      `select from graphile_worker._private_jobs where id = (
         select min(job.id) + 100 from graphile_worker._private_jobs as job
         join graphile_worker._private_tasks as task on task.id = job.task_id and task.identifier = $1
       ) for update`,
      [task],
    );
    await visit(page, `jobs?state=dead&task=${task}`);
    await boxes.first().waitFor();
    await selectAll(page);
    await press(page, "Remove");
    await page.getByRole("dialog").getByRole("button", { name: "Remove 600 jobs" }).click();
    if (isThorough) {
      // The audit shows what goes on in the background, and stops it, too.
      await press(page, "Go on in the background");
      await visit(page, "audit");
      await press(page, "Stop");
      await until(async () => (await utils.listActions()).actions[0]?.stop_asked_by);
    } else {
      await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Stopping …" }).waitFor();
    }
    await client.query("commit");
    client.release();
    if (isThorough) {
      await page.locator("tbody tr").first().getByText("stopped", { exact: true }).waitFor();
    } else {
      await page.getByRole("dialog").getByText("Stopped: changed 500 of 600.").waitFor();
      await press(page, "Close");
    }
    expect(await utils.countJobs({ state: "dead", task })).toBe(100);

    const failures = async (): Promise<number> => (await utils.listHistory({ task: "invoice/pdf" })).entries.length;
    const failuresBefore = await failures();
    await visit(page, `errors/${group!.fingerprint}`);
    await press(page, "Retry all of these (1)");
    await page.getByRole("dialog").getByRole("button", { name: "Retry 1 job" }).click();
    await page.getByRole("dialog").getByText("Done: changed 1 of 1.").waitFor();
    await until(async () => (await failures()) > failuresBefore);
  });
  await visit(page, "audit");
  await page.locator("main").getByText("600").first().waitFor();
  expect(complaintsOf(page)).toEqual([]);
});

/** A button of the bar, what its dialog asks for, and what it makes of a job; `remove` is above. */
interface BulkClick {
  readonly button: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly confirm: (jobs: string) => string;
  readonly isDone: (job: JobRow | undefined) => boolean;
}

// In this order, one job goes through all of them.
const bulkClicks: Readonly<Record<Exclude<JobActionName, "remove">, BulkClick>> = {
  reschedule: {
    button: "Reschedule",
    fields: { "Run at": "2035-01-02T03:04:05", Priority: "-7", "Attempts at most": "4" },
    confirm: (jobs) => `Reschedule ${jobs}`,
    isDone: (job) => job?.run_at.getFullYear() === 2035 && job.priority === -7 && job.max_attempts === 4,
  },
  runNow: {
    button: "Run now",
    confirm: (jobs) => `Run ${jobs} now`,
    isDone: (job) => job !== undefined && job.run_at.getFullYear() !== 2035 && job.priority === -7,
  },
  fail: {
    button: "Fail",
    fields: { Reason: "bad data" },
    confirm: (jobs) => `Fail ${jobs}`,
    isDone: (job) => job?.attempts === 4 && job.last_error === "bad data",
  },
  retry: {
    button: "Retry",
    confirm: (jobs) => `Retry ${jobs}`,
    isDone: (job) => job?.attempts === 0,
  },
  cancel: {
    button: "Cancel",
    fields: { Reason: "not wanted" },
    confirm: (jobs) => `Cancel ${jobs}`,
    isDone: (job) => job === undefined,
  },
};

test.skipIf(!hasBrowser)(
  "every bulk action does to the selected jobs, or to all that match, what its button says",
  async () => {
    const { utils, database, url } = await makeScene();
    const page = await open(url);
    const boxOf = (id: string): Locator => page.getByRole("checkbox", { name: `Select job ${id}`, exact: true });
    // No worker has these tasks, so the jobs stay as they are.
    const addMany = async (task: string, count: number): Promise<string[]> =>
      (
        await utils.addJobs(Array.from({ length: count }, () => ({ identifier: task, payload: {}, runAt: inAnHour() })))
      ).map(({ id }) => id);
    /** Presses the button, gives what its dialog asks for, and confirms. */
    const act = async ({ button, fields = {}, confirm }: BulkClick, count: number): Promise<void> => {
      await press(page, button);
      const dialog = page.getByRole("dialog");
      for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value);
      await press(page, confirm(`${count} jobs`));
    };

    await inEveryView(page, async ({ width, theme }, isThorough) => {
      const some = `some-${width}-${theme}`;
      const [first = "", second = "", third = ""] = await addMany(some, 3);
      const untouched = await database.job(third);
      await visit(page, `jobs?task=${some}`);
      for (const click of Object.values(bulkClicks)) {
        await boxOf(first).check();
        await boxOf(second).check();
        await act(click, 2);
        await until(async () => click.isDone(await database.job(first)) && click.isDone(await database.job(second)), {
          what: click.button,
        });
        expect(await database.job(third), click.button).toEqual(untouched);
        await page.getByRole("toolbar").waitFor({ state: "detached" });
      }
      const { reasons } = await utils.explainJob(first);
      expect(reasons).toMatchObject([{ kind: "cancelled", reason: "not wanted", isGone: true }]);

      if (!isThorough) return;
      // More than a page of them.
      const every = `every-${width}-${theme}`;
      const ids = await addMany(every, 52);
      await visit(page, `jobs?task=${every}`);
      await selectAll(page);
      // Whoever changes the selection means the selected ones.
      const shown = page.getByRole("checkbox", { name: /Select job/ }).first();
      await shown.uncheck();
      await page.getByRole("toolbar").getByText("49 selected").waitFor();
      await shown.check();
      await page.getByRole("toolbar").getByText("50 selected").waitFor();
      await press(page, "Select all that match");
      await press(page, "Clear the selection");
      await shown.check();
      await page.getByRole("toolbar").getByText("1 selected").waitFor();
      await press(page, "Select all shown");
      await press(page, "Select all that match");
      for (const click of Object.values(bulkClicks)) {
        await page.getByRole("toolbar").getByText("All that match").waitFor();
        await act(click, ids.length);
        await page.getByRole("dialog").getByText("Done: changed 52 of 52.").waitFor();
        const rows = new Map((await database.jobs()).map((job) => [job.id, job]));
        expect([click.button, ids.filter((id) => !click.isDone(rows.get(id)))]).toEqual([click.button, []]);
        expect(rows.get(third), click.button).toEqual(untouched);
        await press(page, "Close");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
    });
    expect(complaintsOf(page)).toEqual([]);
  },
);
