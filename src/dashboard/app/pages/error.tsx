import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ErrorDetails } from "../../contract.ts";
import { plural } from "../core/format.ts";
import { address, Link } from "../core/router.tsx";
import { useCan } from "../core/session.ts";
import { useLive } from "../core/use-live.ts";
import { formatCount } from "../parts/amount.tsx";
import { BulkDialog } from "../parts/bulk-dialog.tsx";
import { Button } from "../parts/button.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { HistoryTable } from "../parts/history-table.tsx";
import { TaskLink } from "../parts/links.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { SpanSelect, useSpan } from "../parts/span-select.tsx";
import { Spark } from "../parts/spark.tsx";
import { FoldedStack, Stack } from "../parts/stack.tsx";
import { Ago } from "../parts/time.tsx";

export function ErrorPage({ fingerprint }: { readonly fingerprint: string }): JSX.Element {
  const span = useSpan("30d");
  const live = useLive("error", { fingerprint, span });
  const can = useCan();
  const [isAsked, setAsked] = useState(false);
  const { data, error } = live;
  if (!data && error?.code === "not-found") {
    return (
      <>
        <PageHead title="Error" parent={["Errors", "/errors"]} />
        <Empty icon="unknown" title={error.message}>
          <Link to="/errors">Show all errors</Link>
        </Empty>
      </>
    );
  }
  const present = data?.present;
  return (
    <>
      <PageHead title={data?.group.message ?? "Error"} parent={["Errors", "/errors"]}>
        <div class="actions">
          <SpanSelect usual="30d" />
        </div>
        <div class="action-bar">
          {present && present.count > 0 && can("retry") && (
            <Button look="primary" icon="retry" onClick={() => setAsked(true)}>
              Retry all of these ({formatCount(present)})
            </Button>
          )}
        </div>
      </PageHead>
      <Frame live={live}>{(details) => <Group details={details} />}</Frame>
      {isAsked && (
        <BulkDialog
          action="retry"
          query={{ error: fingerprint }}
          onDone={live.reload}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}

function Group({ details }: { readonly details: ErrorDetails }): JSX.Element {
  const { group, present, error, stack, attempts } = details;
  return (
    <>
      <div class="group-facts">
        <span>
          <TaskLink task={group.task} />
        </span>
        <span class="tag">{group.errorClass}</span>
        <span class="soft">
          {group.count.isMore ? `${formatCount(group.count)} failures` : plural(group.count.count, "failure")} of{" "}
          {group.jobs.isMore ? `${formatCount(group.jobs)} jobs` : plural(group.jobs.count, "job")}, first{" "}
          <Ago at={group.firstAt} />, last <Ago at={group.lastAt} />
        </span>
        <span class="more">
          <Spark values={group.spark} label="Failures" width={220} height={28} isBad />
        </span>
      </div>
      <p class="soft">
        {present.count === 0 ? (
          "None of these jobs is there any more: they succeeded later, or were removed."
        ) : (
          <Link to={address("/jobs", { error: group.fingerprint })}>
            {present.isMore ? `${formatCount(present)} jobs` : plural(present.count, "job")} that failed last like this{" "}
            {present.count === 1 ? "is" : "are"} still there
          </Link>
        )}
      </p>
      <section class="section">
        <div class="section-head">
          <h2>The latest</h2>
          <span class="more">
            <CopyButton text={stack === null ? error : `${error}\n${stack}`} />
          </span>
        </div>
        <Stack text={error} />
        {stack !== null && <FoldedStack stack={stack} isOpen />}
      </section>
      <section class="section">
        <h2 class="section-head">Example jobs</h2>
        <HistoryTable entries={attempts} hasError={false} />
      </section>
    </>
  );
}
