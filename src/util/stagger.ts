/**
 * A share of a span, from three quarters to the whole. Of many processes that wait for a random share, and start anew when one is done, few are early:
 * so the first is done, and heard of, before the second begins.
 */
export function staggeredShare(random: () => number = Math.random): number {
  return 0.75 + random() ** (1 / 6) / 4;
}
