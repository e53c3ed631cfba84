/*
 * Task names, keys, errors and the output of programs come from others. A terminal obeys the control characters in them, and a
 * line break could forge the next line, so they are shown as escapes.
 */

// Control characters of both kinds, line and paragraph separators, and the marks that turn the direction of what follows.
const unprintable = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const shortEscapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** The text on one line, without anything that a terminal would act on. */
export function printable(text: string): string {
  return text.replace(unprintable, escaped);
}

/** The same, but line breaks and tabs stay; for texts that stand by themselves. */
export function printableLines(text: string): string {
  return text.replace(unprintable, (character) => (/[\n\t]/.test(character) ? character : escaped(character)));
}

/** The same for a log: a line break stays only where the next line is indented, so that no line can be forged. */
export function printableMessage(text: string): string {
  return printableLines(text.replaceAll("\r\n", "\n")).replace(/\n(?! {2}|$)/g, "\\n");
}

function escaped(character: string): string {
  const short = shortEscapes[character];
  if (short) return short;
  const code = character.codePointAt(0)!;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
