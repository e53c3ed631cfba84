export type { Permission } from "../contract.ts";
export { createDashboard, type Dashboard } from "./create-dashboard.ts";
export type {
  Authenticate,
  BasicAccount,
  BearerAccount,
  DashboardAuth,
  DashboardOptions,
  DashboardUser,
  Permitted,
} from "./options.ts";
export { type DashboardServer, type ServeDashboardOptions, serveDashboard } from "./serve-dashboard.ts";
