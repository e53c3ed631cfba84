/** Repeatable noise between 0 and 1. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

export function shuffled<T>(list: readonly T[], roll: () => number): T[] {
  return list
    .map((item) => [roll(), item] as const)
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item);
}
