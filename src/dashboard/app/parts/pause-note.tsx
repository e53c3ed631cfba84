import type { JSX } from "preact";
import type { PauseInfo } from "../../contract.ts";
import { Icon } from "./icon.tsx";
import { Ago } from "./time.tsx";

/** A pause in one line, for where it takes effect. */
export function PauseNote({ pause }: { readonly pause: PauseInfo }): JSX.Element {
  return (
    <div class="banner is-warn">
      <Icon name="paused" />
      <span class="wrap">
        Paused{pause.kind === "all" ? ", as everything is," : ""} <Ago at={pause.at} />
        {pause.by !== null && ` by ${pause.by}`}
        {pause.until !== null && (
          <>
            , ends <Ago at={pause.until} />
          </>
        )}
        {pause.reason !== null && `: ${pause.reason}`}
      </span>
    </div>
  );
}
