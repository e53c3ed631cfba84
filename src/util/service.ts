/**
 * What goes on in the background between `start` and `stop`. When `stop` has resolved, nothing of it is under way. What does nothing by itself has no
 * `start`: it takes what it is given until `close`.
 */
export interface Service {
  start(): void;
  stop(): Promise<void> | void;
}
