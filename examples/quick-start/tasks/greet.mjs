/** Does the work of all jobs called "greet". If it throws, the job is tried again later. */
export default async function greet(payload, helpers) {
  helpers.logger.info(`Hello, ${payload.name}!`);
}
