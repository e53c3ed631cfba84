import { type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "../contract.ts";
import { messageOf, read } from "./core/api.ts";
import { Link, usePlace } from "./core/router.tsx";
import { SessionContext } from "./core/session.ts";
import { AddPage } from "./pages/add.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { CronPage } from "./pages/cron.tsx";
import { ErrorPage } from "./pages/error.tsx";
import { ErrorsPage } from "./pages/errors.tsx";
import { HistoryPage } from "./pages/history.tsx";
import { JobPage } from "./pages/job.tsx";
import { JobsPage } from "./pages/jobs.tsx";
import { LimitsPage } from "./pages/limits.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { QueuesPage } from "./pages/queues.tsx";
import { TaskPage } from "./pages/task.tsx";
import { TasksPage } from "./pages/tasks.tsx";
import { WorkersPage } from "./pages/workers.tsx";
import { Button } from "./parts/button.tsx";
import { Empty } from "./parts/frame.tsx";
import { PageHead } from "./parts/page-head.tsx";
import { Shell } from "./parts/shell.tsx";

const routes: readonly (readonly [RegExp, (part: string) => JSX.Element])[] = [
  [/^\/$/, () => <OverviewPage />],
  [/^\/jobs\/?$/, () => <JobsPage />],
  [/^\/jobs\/new$/, () => <AddPage />],
  [/^\/jobs\/([^/]+)$/, (id) => <JobPage key={id} id={id} />],
  [/^\/errors\/?$/, () => <ErrorsPage />],
  [/^\/errors\/([^/]+)$/, (fingerprint) => <ErrorPage key={fingerprint} fingerprint={fingerprint} />],
  [/^\/tasks\/?$/, () => <TasksPage />],
  [/^\/tasks\/(.+)$/, (task) => <TaskPage key={task} task={task} />],
  [/^\/queues\/?$/, () => <QueuesPage />],
  [/^\/cron\/?$/, () => <CronPage />],
  [/^\/workers\/?$/, () => <WorkersPage />],
  [/^\/limits\/?$/, () => <LimitsPage />],
  [/^\/history\/?$/, () => <HistoryPage />],
  [/^\/audit\/?$/, () => <AuditPage />],
];

function Page(): JSX.Element {
  const { path } = usePlace();
  for (const [pattern, show] of routes) {
    const found = pattern.exec(path);
    if (found) return show(decode(found[1] ?? ""));
  }
  return (
    <>
      <PageHead title="Not found" />
      <Empty icon="unknown" title="There is no such page.">
        <Link to="/">Go to the overview</Link>
      </Empty>
    </>
  );
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Everything depends on who is there and what they may do, so that is asked first. */
function App(): JSX.Element {
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState<string>();
  const load = (): void => {
    setProblem(undefined);
    read("session").then(setSession, (error: unknown) => setProblem(messageOf(error)));
  };
  useEffect(load, []);
  if (problem) {
    return (
      <main>
        <Empty icon="warning" title={problem}>
          <Button icon="retry" onClick={load}>
            Try again
          </Button>
        </Empty>
      </main>
    );
  }
  if (!session) return <main class="page" aria-busy="true" />;
  return (
    <SessionContext.Provider value={session}>
      <Shell>
        <Page />
      </Shell>
    </SessionContext.Provider>
  );
}

render(<App />, document.getElementById("app")!);
