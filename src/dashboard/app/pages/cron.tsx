import type { JSX } from "preact";
import { taskAddress } from "../core/addresses.ts";
import { go } from "../core/router.tsx";
import { useLive } from "../core/use-live.ts";
import { useRowKeys } from "../core/use-row-keys.ts";
import { CronTable } from "../parts/cron-table.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { PageHead } from "../parts/page-head.tsx";

export function CronPage(): JSX.Element {
  const live = useLive("cron", {});
  const entries = live.data?.entries ?? [];
  const { cursor } = useRowKeys({
    count: entries.length,
    open: (index) => {
      const task = entries[index]!.task;
      if (task !== null) go(taskAddress(task));
    },
  });
  return (
    <>
      <PageHead title="Cron" />
      <Frame live={live}>
        {(data) =>
          data.entries.length === 0 ? (
            <Empty icon="calendar" title="No cron entries.">
              <span>
                A line in a worker's <code>crontab</code> adds jobs at fixed times: <code>0 4 * * * clean-up</code>
              </span>
            </Empty>
          ) : (
            <CronTable entries={data.entries} reload={live.reload} cursor={cursor} />
          )
        }
      </Frame>
    </>
  );
}
