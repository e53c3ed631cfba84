export interface Greeting {
  name: string;
}

/** Known everywhere by the name of the task: in `Task<"users/greet">`, and wherever a job is added. */
declare global {
  namespace GraphileWorker {
    interface Tasks {
      "users/greet": Greeting;
    }
  }
}
