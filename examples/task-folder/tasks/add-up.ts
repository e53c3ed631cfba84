import { defineTask } from "hathi";

export default defineTask<{ numbers: number[] }>({
  identifier: "add-up",
  maxAttempts: 3,
  run: ({ numbers }, { logger }) => {
    logger.info(`The sum is ${numbers.reduce((sum, number) => sum + number, 0)}`);
  },
});
