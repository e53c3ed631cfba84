/**
 * For each job, the longest stretch between its claim and its start in which the other process had a free slot.
 * `records` holds, for each of two processes, when it was ready and when its jobs were claimed, started and ended.
 */
export function longestNeedlessWait(records, slots) {
  return records.flatMap(({ spans }, index) => {
    const free = freeStretches(records[1 - index], slots);
    return spans.map(({ claimedAt, startedAt }) =>
      Math.max(0, ...free.map(([from, to]) => Math.min(to, startedAt) - Math.max(from, claimedAt))),
    );
  });
}

/** The stretches of time in which fewer than `slots` jobs ran: all of it for a process that never got one. */
function freeStretches({ spans, readyAt }, slots) {
  const changes = spans
    .flatMap(({ startedAt, endedAt }) => [
      { at: startedAt, by: 1 },
      { at: endedAt, by: -1 },
    ])
    // An end before a start at the same millisecond would open a gap that never was.
    .sort((a, b) => a.at - b.at || b.by - a.by);
  const stretches = [];
  let running = 0;
  let freeSince = readyAt;
  for (const { at, by } of changes) {
    running += by;
    if (running < slots) freeSince ??= at;
    else if (freeSince !== undefined) {
      stretches.push([freeSince, at]);
      freeSince = undefined;
    }
  }
  // After its last job a process has nothing but free slots.
  if (freeSince !== undefined) stretches.push([freeSince, Number.POSITIVE_INFINITY]);
  return stretches;
}
