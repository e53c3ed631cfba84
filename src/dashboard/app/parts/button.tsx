import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps {
  readonly onClick?: ((event: MouseEvent) => void) | undefined;
  readonly icon?: IconName;
  readonly look?: "primary" | "danger" | "quiet" | "link";
  readonly small?: boolean;
  readonly disabled?: boolean;
  readonly type?: "button" | "submit";
  /** Its name where it shows an icon only, or needs more words for those who cannot see its row. */
  readonly label?: string | undefined;
  readonly title?: string | undefined;
  readonly children?: ComponentChildren;
}

export function Button(props: ButtonProps): JSX.Element {
  const { icon, look, small, disabled = false, type = "button", label, title, children, onClick } = props;
  const isIcon = children === undefined;
  const names = ["button", look && `is-${look}`, small && "is-small", isIcon && "is-icon"].filter(Boolean).join(" ");
  return (
    <button
      type={type}
      class={names}
      disabled={disabled}
      aria-label={label}
      title={title ?? (isIcon ? label : undefined)}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}
