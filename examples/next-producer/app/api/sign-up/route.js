import { openJobs } from "../../../jobs.mjs";

/** The user and the job that welcomes them are there together, or not at all. */
export async function POST(request) {
  const { email } = await request.json();
  const { pool, utils } = await openJobs();
  const client = await pool.connect();
  try {
    await client.query("begin");
    const { rowCount } = await client.query("insert into example_sign_ups values ($1) on conflict do nothing", [email]);
    if (rowCount === 0) {
      await client.query("rollback");
      return Response.json({ error: `${email} has signed up already.` }, { status: 409 });
    }
    const job = await utils.withTransaction(client).addJob("welcome-sign-up", { email });
    await client.query("commit");
    return Response.json({ job: job.id }, { status: 202 });
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
