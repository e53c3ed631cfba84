/** The name a person most likely meant, or `undefined` if none of them is close. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(simplify(word), simplify(name));
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** A question that can be added to a message, or nothing if no name is close. */
export function suggestion(word: string, names: Iterable<string>): string {
  const name = nearest(word, names);
  return name === undefined ? "" : ` Did you mean '${name}'?`;
}

/** Spelling variants such as `poll_interval` and `PollInterval` are the same word to a person. */
function simplify(word: string): string {
  return word.replaceAll(/[_-]/g, "").toLowerCase();
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}
