/** A page by its title and address. */
export const page = (text, link) => ({ text, link });

const guideGroups = [
  {
    text: "Jobs",
    items: [
      page("Jobs and keys", "/jobs-and-keys"),
      page("Queues", "/queues"),
      page("Scheduling", "/scheduling"),
      page("Cron and time zones", "/cron-and-time-zones"),
      page("Batch jobs", "/batch-jobs"),
    ],
  },
  {
    text: "Code",
    items: [
      page("Typed tasks", "/typed-tasks"),
      page("Hooks and plugins", "/hooks-and-plugins"),
      page("Testing", "/testing"),
    ],
  },
  {
    text: "Production",
    items: [
      page("Deployment", "/deployment"),
      page("Crash recovery", "/crash-recovery"),
      page("Performance and scaling", "/performance-and-scaling"),
    ],
  },
];
export const guides = guideGroups.flatMap(({ items }) => items);

export const sidebar = [
  {
    text: "Start",
    items: [
      page("Getting started", "/getting-started"),
      page("Migrating from Graphile Worker", "/migrating-from-graphile-worker"),
      page("Comparison", "/comparison"),
    ],
  },
  ...guideGroups,
  {
    text: "Reference",
    items: [
      page("Options", "/reference/options"),
      page("Command line", "/reference/cli"),
      page("SQL", "/reference/sql"),
      page("Events", "/reference/events"),
      page("Errors", "/reference/errors"),
    ],
  },
  { text: "Inside", items: [page("How it works", "/internals"), page("Job states", "/job-states")] },
];
