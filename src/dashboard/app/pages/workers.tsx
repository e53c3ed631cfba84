import type { JSX } from "preact";
import { usePlace } from "../core/router.tsx";
import { useLive } from "../core/use-live.ts";
import { Empty, Frame } from "../parts/frame.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { WorkerCard } from "../parts/worker-card.tsx";

export function WorkersPage(): JSX.Element {
  const asked = usePlace().query.get("worker");
  const live = useLive("workers", {});
  return (
    <>
      <PageHead title="Workers" />
      <Frame live={live}>
        {(data) =>
          data.workers.length === 0 ? (
            <Empty icon="server" title="No worker is alive.">
              <span>
                Start one: <code>npx hathi</code>. Workers with <code>recovery</code> on send heartbeats and are listed
                here, others while they hold jobs.
              </span>
            </Empty>
          ) : (
            <ul class="workers">
              {data.workers.map((worker) => (
                <WorkerCard key={worker.id} worker={worker} isAsked={worker.id === asked} reload={live.reload} />
              ))}
            </ul>
          )
        }
      </Frame>
    </>
  );
}
