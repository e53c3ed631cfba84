import type { CallerTransaction } from "../../../src/caller-transaction.ts";

/** One way for a user to have a transaction. */
export interface Library {
  readonly name: string;
  open(url: string): Promise<OpenLibrary>;
}

export interface OpenLibrary {
  /** Opens a transaction in the library's usual way: commits when the work resolves, rolls back when it throws. */
  transaction(work: (tx: CallerTransaction) => Promise<void>): Promise<unknown>;
  /** What a user might hand in by mistake. */
  readonly outside: unknown;
  close(): Promise<unknown>;
}
