/** GET api/form?task=…: what the server knows of the payloads that a task takes. */
export interface PayloadForm {
  readonly task: string;
  /** The server has the task, so that it knows whether there is a schema. */
  readonly isKnown: boolean;
  /** Payloads are checked by the task's validator. */
  readonly isChecked: boolean;
  /** What the validator takes, as JSON Schema; null if its library cannot tell, or if there is none. */
  readonly schema: PayloadSchema | null;
}

/** The parts of JSON Schema that a form is made from. */
export interface PayloadSchema {
  readonly type?: unknown;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
  readonly enum?: unknown;
  readonly default?: unknown;
  readonly format?: unknown;
}

/** POST api/check with `task`, `payload` and `copyOf` of a `NewJob`: what is wrong with the payload. Needs the permission to add. */
export interface PayloadCheck {
  readonly isChecked: boolean;
  /** At most 20. */
  readonly issues: readonly PayloadProblem[];
}

export interface PayloadProblem {
  /** `items[2].id`; empty for the payload itself. */
  readonly path: string;
  readonly message: string;
}
