import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PayloadForm } from "../../contract.ts";
import { jobAddress } from "../core/addresses.ts";
import { act, messageOf, read } from "../core/api.ts";
import { type Draft, draftOf, emptyDraft, newJobOf, parsePayload } from "../core/job-draft.ts";
import { go, Link, usePlace } from "../core/router.tsx";
import { useCan, useSession } from "../core/session.ts";
import { usePayloadCheck, usePayloadForm } from "../core/use-payload-check.ts";
import { Button } from "../parts/button.tsx";
import { Field } from "../parts/field.tsx";
import { Empty } from "../parts/frame.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PayloadEditor } from "../parts/payload-editor.tsx";
import { tell } from "../parts/toasts.tsx";

/** Adds a job by hand, or a copy of another one with its payload edited. */
export function AddPage(): JSX.Element {
  const { query } = usePlace();
  const { tasks } = useSession();
  const can = useCan();
  const copyOf = query.get("copyOf") ?? undefined;
  const [draft, setDraft] = useState<Draft>({ ...emptyDraft, task: query.get("task") ?? "" });
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [isEdited, setEdited] = useState(false);
  const change = (changes: Partial<Draft>): void => {
    setProblem(undefined);
    if (changes.payload !== undefined) setEdited(true);
    setDraft((known) => ({ ...known, ...changes }));
  };
  const task = draft.task.trim();
  const json = parsePayload(draft.payload);
  const form = usePayloadForm(can("add") ? task : "");
  const isChecked = form?.isChecked === true;
  const { problems, check } = usePayloadCheck(
    { task, payload: json.value, copyOf },
    isChecked && isEdited && json.problem === undefined,
  );

  useEffect(() => {
    if (!copyOf) return;
    read("job", { id: copyOf }).then(
      (job) => setDraft(draftOf(job)),
      (error: unknown) => setProblem(messageOf(error)),
    );
  }, [copyOf]);

  const title = copyOf ? `Duplicate job #${copyOf}` : "Add a job";
  if (!can("add")) {
    return (
      <>
        <PageHead title={title} parent={["Jobs", "/jobs"]} />
        <Empty icon="lock" title="You may not add jobs here.">
          <Link to="/jobs">Show the jobs</Link>
        </Empty>
      </>
    );
  }
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      setEdited(true);
      if (isChecked && !(await check())) return;
      const result = await act("add", newJobOf(draft, json.value, copyOf));
      tell(result.message);
      const [id] = result.ids;
      if (id !== undefined) go(jobAddress(id));
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const text = (
    name: keyof Draft,
    label: string,
    hint?: string,
    inputMode: "text" | "numeric" = "text",
  ): JSX.Element => (
    <Field label={label} hint={hint}>
      {(ids) => (
        <input
          {...ids}
          class="input"
          inputMode={inputMode}
          value={draft[name]}
          onInput={(event) => change({ [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  return (
    <>
      <PageHead title={title} parent={["Jobs", "/jobs"]} />
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Field label="Task" isWide hint={hintOf(form)}>
          {(ids) => (
            <>
              <input
                {...ids}
                class="input"
                list="tasks"
                required
                value={draft.task}
                onInput={(event) => change({ task: event.currentTarget.value })}
              />
              <datalist id="tasks">
                {tasks.map(({ name }) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        <PayloadEditor
          form={form}
          text={draft.payload}
          problems={problems}
          problem={problem}
          isCopy={copyOf !== undefined}
          change={(payload) => change({ payload })}
        />
        {text("queue", "Queue", "Jobs of one queue run one after the other.")}
        {text("key", "Key", "A waiting job with the same key is replaced.")}
        <Field label="Run at" hint="In your time zone; now if empty.">
          {(ids) => (
            <input
              {...ids}
              class="input"
              type="datetime-local"
              step="1"
              value={draft.runAt}
              onInput={(event) => change({ runAt: event.currentTarget.value })}
            />
          )}
        </Field>
        <Field label="If the key exists">
          {(ids) => (
            <select
              {...ids}
              class="select"
              disabled={draft.key === ""}
              value={draft.keyMode}
              onChange={(event) => change({ keyMode: event.currentTarget.value })}
            >
              <option value="">Replace the job</option>
              <option value="preserve_run_at">Replace it, keep its time</option>
              <option value="unsafe_dedupe">Keep the job as it is</option>
            </select>
          )}
        </Field>
        {text("priority", "Priority", "A lower number runs first.", "numeric")}
        {text("maxAttempts", "Attempts at most", "25 if empty.", "numeric")}
        {text("flags", "Flags", "Separated by commas.")}
        <div class="is-wide row">
          <Button
            type="submit"
            look="primary"
            disabled={isBusy || json.problem !== undefined || draft.task.trim() === ""}
          >
            {copyOf ? "Add the copy" : "Add the job"}
          </Button>
          <Link class="button is-quiet" to={copyOf ? jobAddress(copyOf) : "/jobs"}>
            Cancel
          </Link>
        </div>
      </form>
    </>
  );
}

function hintOf(form: PayloadForm | undefined): string | undefined {
  if (!form) return undefined;
  if (!form.isKnown) return "This server does not know the task or its schema: the payload is not checked.";
  if (!form.isChecked) return "The task has no schema: any JSON is accepted.";
  return "The payload is checked against the task's schema while you type, and when the job is added.";
}
