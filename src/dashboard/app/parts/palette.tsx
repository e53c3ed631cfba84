import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { FindAnswer } from "../../contract.ts";
import { read } from "../core/api.ts";
import { address, go } from "../core/router.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { pages } from "./page-list.ts";
import { lookOf } from "./state.tsx";
import { useDialogElement } from "./use-dialog.ts";

interface Hit {
  readonly icon: IconName;
  readonly text: string;
  readonly kind: string;
  readonly to: string;
}

const pauseMs = 150;

/** Finds a page, a job by id or key, a task or a queue, and goes there. */
export function Palette({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const element = useDialogElement();
  const [text, setText] = useState("");
  const [found, setFound] = useState<FindAnswer>();
  const [at, setAt] = useState(0);
  const hits = useMemo(() => listHits(text, found), [text, found]);

  useEffect(() => {
    if (text.trim() === "") {
      setFound(undefined);
      return;
    }
    const leaving = new AbortController();
    const timer = window.setTimeout(() => {
      read("find", { q: text.trim() }, leaving.signal).then(setFound, () => undefined);
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      leaving.abort();
    };
  }, [text]);

  const open = (hit: Hit | undefined): void => {
    if (!hit) return;
    onClose();
    go(hit.to);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter") open(hits[at]);
    else return;
    event.preventDefault();
  };

  return (
    <dialog
      ref={element}
      class="palette"
      aria-label="Go to"
      onClose={() => element.current && onClose()}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <input
        class="input"
        role="combobox"
        aria-label="Find a page, job, task or queue"
        aria-expanded="true"
        aria-controls="palette-hits"
        aria-activedescendant={hits[at] && `hit-${at}`}
        placeholder="Job id, key, task, queue or page"
        autoComplete="off"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette-hits" role="listbox" aria-label="Found">
        {hits.map((hit, index) => (
          <li
            key={hit.to}
            id={`hit-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onClick={() => open(hit)}
            onKeyDown={onKeyDown}
          >
            <Icon name={hit.icon} />
            <span class="clip">{hit.text}</span>
            <span class="faint">{hit.kind}</span>
          </li>
        ))}
        {hits.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true">
            Nothing found.
          </li>
        )}
      </ul>
    </dialog>
  );
}

function listHits(text: string, found: FindAnswer | undefined): Hit[] {
  const wanted = text.trim().toLowerCase();
  const named = pages
    .filter(({ name }) => name.toLowerCase().includes(wanted))
    .map(({ name, to, icon }): Hit => ({ icon, text: name, kind: "Page", to }));
  const jobs = (found?.jobs ?? []).map(
    (job): Hit => ({
      icon: lookOf(job.state).icon,
      text: `#${job.id} ${job.task}${job.key === null ? "" : ` ${job.key}`}`,
      kind: "Job",
      to: `/jobs/${job.id}`,
    }),
  );
  const tasks = (found?.tasks ?? []).map(
    (task): Hit => ({ icon: "code", text: task, kind: "Task", to: `/tasks/${task}` }),
  );
  const queues = (found?.queues ?? []).map(
    (queue): Hit => ({
      icon: "queue",
      text: queue,
      kind: "Queue",
      to: address("/jobs", { queue }),
    }),
  );
  const add: Hit[] = "add a job".includes(wanted)
    ? [{ icon: "plus", text: "Add a job", kind: "Action", to: "/jobs/new" }]
    : [];
  return [...jobs, ...named, ...add, ...tasks, ...queues].slice(0, 20);
}
