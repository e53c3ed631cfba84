/** A job on its way into the database; null leaves the choice to the database's defaults. */
export interface NewJob {
  readonly identifier: string;
  /** JSON text. */
  readonly payload: string | null;
  readonly queueName: string | null;
  /** ISO 8601. */
  readonly runAt: string | null;
  readonly maxAttempts: number | null;
  readonly jobKey: string | null;
  readonly priority: number | null;
  readonly flags: readonly string[] | null;
}
