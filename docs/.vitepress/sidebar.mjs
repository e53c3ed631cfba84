/** A page by its title and address. */
export const page = (text, link) => ({ text, link });

const guideGroups = [
  {
    text: "Jobs",
    items: [
      page("Jobs and keys", "/jobs-and-keys"),
      page("Queues", "/queues"),
      page("Control of a job", "/control"),
      page("Pausing", "/pausing"),
      page("Effects exactly once", "/exactly-once"),
      page("Limits and fairness", "/limits"),
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
      page("Express, Fastify, Nest and Next", "/frameworks"),
      page("Bundlers and CommonJS", "/bundlers-and-commonjs"),
    ],
  },
  {
    text: "Production",
    items: [
      page("Deployment", "/deployment"),
      page("Dashboard", "/dashboard"),
      page("Monitoring", "/monitoring"),
      page("History and results", "/history-and-results"),
      page("Crash recovery", "/crash-recovery"),
      page("Least privilege", "/least-privilege"),
      page("Performance", "/performance-and-scaling"),
      page("Scaling a fleet", "/scaling"),
      page("Forwarding", "/forwarding"),
      page("Upgrading", "/upgrading"),
      page("Troubleshooting", "/troubleshooting"),
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
      page("Recipes", "/recipes"),
      page("Examples", "/examples"),
      page("FAQ", "/faq"),
      page("Comparison", "/comparison"),
    ],
  },
  ...guideGroups,
  {
    text: "Reference",
    items: [
      page("Options", "/reference/options"),
      page("Functions", "/reference/functions"),
      page("Command line", "/reference/cli"),
      page("SQL", "/reference/sql"),
      page("Events", "/reference/events"),
      page("Errors", "/reference/errors"),
    ],
  },
  {
    text: "More",
    items: [page("How it works", "/internals"), page("Job states", "/job-states"), page("Changes", "/changelog")],
  },
];
