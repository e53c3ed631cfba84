import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Permission, Session } from "../../contract.ts";

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("There is no session yet.");
  return session;
}

/** Whether the person may do this; the server checks it again. */
export function useCan(): (permission: Permission) => boolean {
  const { can, isReadOnly } = useSession();
  return (permission) => !isReadOnly && can.includes(permission);
}
