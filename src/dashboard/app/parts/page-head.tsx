import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Link } from "../core/router.tsx";
import { useSession } from "../core/session.ts";

interface PageHeadProps {
  readonly title: string;
  /** Where this page belongs: its name and address. */
  readonly parent?: readonly [string, string];
  /** Shown instead of the title's text. */
  readonly heading?: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function PageHead({ title, parent, heading, children }: PageHeadProps): JSX.Element {
  const session = useSession();
  useEffect(() => {
    document.title = `${title} · ${session.title ?? "Hathi"}`;
  }, [title, session.title]);
  return (
    <div class="page-head">
      <div class="crumbs">
        {parent && (
          <>
            <Link to={parent[1]}>{parent[0]}</Link>
            <span class="faint" aria-hidden="true">
              ›
            </span>
          </>
        )}
        <h1>{heading ?? title}</h1>
      </div>
      {children}
    </div>
  );
}
