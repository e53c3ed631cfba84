import type { Task } from "hathi";
import type {} from "../../payloads.ts";

/** The payload's type comes from the task's name. */
const greet: Task<"users/greet"> = async ({ name }, { logger, addJob }) => {
  logger.info(`Hello, ${name}!`);
  await addJob("add-up", { numbers: [name.length, 1] });
};

export default greet;
