export {};

declare global {
  namespace GraphileWorker {
    interface Tasks {
      "send-email": { to: string; subject: string };
      "users/welcome": { id: number; email: string };
      "count-visits": { user: number; visit: number }[];
      flaky: { failures: number };
    }
  }
}
