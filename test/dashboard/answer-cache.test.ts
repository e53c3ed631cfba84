import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AnswerCache } from "../../src/dashboard/server/answer-cache.ts";

/* Time is the test's own here: an answer takes exactly as long as it says. */

beforeEach(() => void vi.useFakeTimers({ toFake: ["hrtime", "setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

interface Answer {
  readonly key: string;
  readonly takesMs: number;
  made: number;
}

const answersThatTake = (times: readonly number[]): Answer[] =>
  times.map((takesMs, n) => ({ key: `answer ${n}`, takesMs, made: 0 }));

async function ask(cache: AnswerCache, answer: Answer): Promise<void> {
  await cache.get(answer.key, 1_000, async () => {
    vi.advanceTimersByTime(answer.takesMs);
    answer.made++;
    return answer.made;
  });
}

/** Ten pages are open for some time; each asks once a second. */
async function follow(cache: AnswerCache, answers: readonly Answer[], seconds: number): Promise<void> {
  const followed = cache.forFollowers();
  for (let second = 0; second < seconds; second++) {
    for (let viewer = 0; viewer < 10; viewer++) for (const answer of answers) await ask(followed, answer);
    vi.advanceTimersByTime(1_000);
  }
}

const workOf = (answers: readonly Answer[]): number =>
  answers.reduce((sum, { takesMs, made }) => sum + takesMs * made, 0);

test.each([
  ["an overview", [0.1, 0.1, 1, 15, 18, 30]],
  ["ten different pages", [0.1, 0.1, 0.5, 1, 1, 2, 2, 3, 7, 15, 18, 30, 35, 45]],
  ["pages of very many jobs", [1, 20, 50, 90, 120, 150]],
])("what is read for pages that stay open takes a hundredth of the time: %s", async (_, times) => {
  const cache = new AnswerCache();
  const answers = answersThatTake(times);
  // At first nobody knows what an answer costs.
  await follow(cache, answers, 200);
  for (const answer of answers) answer.made = 0;
  await follow(cache, answers, 600);
  expect(workOf(answers) / 600_000).toBeLessThan(0.011);
  const dearest = answers.at(-1)!.made;
  expect(dearest).toBeGreaterThan(0);
  // The others are not held up by it.
  expect(answers[0]!.made).toBeGreaterThan(5 * dearest);
});

test("what costs little is read as often as it may be", async () => {
  const cache = new AnswerCache();
  const answers = answersThatTake([0.1, 0.2, 0.5, 1, 1]);
  await follow(cache, answers, 60);
  for (const { made } of answers) expect(made).toBeGreaterThanOrEqual(58);
});

test("a busy moment does not make an answer old for long", async () => {
  const cache = new AnswerCache();
  const usual = answersThatTake([1, 1, 1]);
  await follow(cache, usual, 10);
  const slow = usual.map((answer) => ({ ...answer, takesMs: 100, made: 0 }));
  for (const answer of slow) await ask(cache, answer);
  for (const answer of usual) answer.made = 0;
  // Not what all three would cost if they always took so long.
  await follow(cache, usual, 8);
  for (const { made } of usual) expect(made).toBeGreaterThan(0);
});

test("whoever comes anew does not get what was left alone for those who stay", async () => {
  const cache = new AnswerCache();
  const answers = answersThatTake([40, 40, 40, 40, 40, 40]);
  await follow(cache, answers, 60);
  const [first] = answers;
  await ask(cache, first!);
  vi.advanceTimersByTime(2_500);
  const before = first!.made;
  await ask(cache.forFollowers(), first!);
  expect(first!.made).toBe(before);
  await ask(cache, first!);
  expect(first!.made).toBe(before + 1);
});

test("what was changed is read again at once, by those who stay, too", async () => {
  const cache = new AnswerCache();
  const [answer] = answersThatTake([40]);
  const followed = cache.forFollowers();
  await ask(followed, answer!);
  cache.markStale();
  await ask(followed, answer!);
  expect(answer!.made).toBe(2);
});
