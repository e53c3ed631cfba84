import { createServer, type Server } from "node:net";

/** A loopback port that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = await listen(0);
  const address = server.address();
  await close(server);
  if (address === null || typeof address === "string") throw new Error("The probe socket has no port.");
  return address.port;
}

export async function isPortFree(port: number): Promise<boolean> {
  try {
    await close(await listen(port));
    return true;
  } catch {
    return false;
  }
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port, exclusive: true }, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
