import type { JSX } from "preact";
import { useLive } from "../core/use-live.ts";
import { Frame } from "../parts/frame.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { SpanSelect, useSpan } from "../parts/span-select.tsx";
import { TaskTable } from "../parts/task-table.tsx";

export function TasksPage(): JSX.Element {
  const span = useSpan();
  const live = useLive("tasks", { span });
  return (
    <>
      <PageHead title="Tasks">
        <div class="actions">
          <SpanSelect />
        </div>
      </PageHead>
      <Frame live={live}>{(data) => <TaskTable tasks={data.tasks} span={data.span} />}</Frame>
    </>
  );
}
