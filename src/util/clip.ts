const encoder = new TextEncoder();

/** The string if it fits into `maxBytes` of UTF-8; otherwise its head and its tail, with a note of what was cut out. */
export function clip(text: string, maxBytes: number): string {
  // A UTF-16 unit takes three bytes at most, so most strings need not be measured.
  if (text.length * 3 <= maxBytes || (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes)) return text;
  const note = (characters: number): string => `… (${characters.toLocaleString("en")} characters cut) …`;
  const room = Math.max(0, maxBytes - Buffer.byteLength(note(text.length)));
  const head = headOf(text, Math.ceil(room / 2));
  const tail = tailOf(text, Math.floor(room / 2));
  return head + note(text.length - head.length - tail.length) + tail;
}

function headOf(text: string, bytes: number): string {
  const { read } = encoder.encodeInto(text.slice(0, bytes), new Uint8Array(bytes));
  return text.slice(0, read);
}

function tailOf(text: string, bytes: number): string {
  if (bytes === 0) return "";
  const end = Buffer.from(text.slice(-bytes)).subarray(-bytes);
  let start = 0;
  // Never begin inside a character.
  while (start < end.length && (end[start]! & 0xc0) === 0x80) start++;
  return end.toString("utf8", start);
}
