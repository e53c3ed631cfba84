import { createDashboard } from "hathi/dashboard";

export const dynamic = "force-dynamic";

function open() {
  globalThis.hathiDashboard ??= createDashboard({
    connectionString: process.env.DATABASE_URL,
    auth: { basic: { username: "ops", password: process.env.DASHBOARD_PASSWORD } },
    basePath: "/admin/hathi",
  });
  return globalThis.hathiDashboard;
}

export const GET = (request) => open().fetch(request);
export const POST = (request) => open().fetch(request);
