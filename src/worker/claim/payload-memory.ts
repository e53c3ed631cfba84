import { constants } from "node:buffer";
import { getHeapStatistics } from "node:v8";

/** What a payload needs of memory, compared to its text: the text, and what is made of it. */
const memoryFactor = 3;
/** V8 takes this much for an array or object, for a place in one, and for a number that is not whole, while it parses them. */
const [containerBytes, placeBytes, fractionBytes] = [56, 8, 16];
/** An array of more places ends the process instead of throwing. */
const maxPlaces = 2 ** 27 - 1024;
const advice = "Raise --max-old-space-size, or keep large values elsewhere and put a reference into the payload.";

/** Why a payload of so many bytes of JSON cannot be read; undefined if it can. */
export function reasonNotToRead(bytes: number, maxBytes: number = constants.MAX_STRING_LENGTH): string | undefined {
  if (bytes > maxBytes) {
    return `The payload has ${bytes} bytes; a string of this process holds at most ${maxBytes}, so it cannot be read.`;
  }
  const free = freeBytes();
  if (bytes * memoryFactor <= free) return undefined;
  return `The payload has ${bytes} bytes, too many for the ${free} bytes of memory that this process has left. ${advice}`;
}

/** Why this JSON cannot be parsed; undefined if it can. Many small values take much more memory than their text, and no error would be thrown. */
export function reasonNotToParse(text: string): string | undefined {
  const { places, bytes } = sizeWhenParsed(text);
  if (places > maxPlaces) {
    return `The payload holds ${places} values; an array of this process holds at most ${maxPlaces}, so it cannot be parsed.`;
  }
  const free = freeBytes();
  if (bytes <= free) return undefined;
  return `The payload needs about ${bytes} bytes of memory when parsed, more than the ${free} that this process has left. ${advice}`;
}

function freeBytes(): number {
  const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
  return limit - used;
}

/** About what V8 allocates for it. Strings count as long as their text. */
export function sizeWhenParsed(text: string): { places: number; bytes: number } {
  let places = 1;
  let containers = 0;
  let fractions = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) at = endOfString(text, at);
    else if (character === 0x2c) places++;
    else if (character === 0x2e) fractions++;
    else if (character === 0x5b || character === 0x7b) containers++;
  }
  const bytes = text.length + containers * containerBytes + places * placeBytes + fractions * fractionBytes;
  return { places, bytes };
}

/** Where the string that starts there ends: at the next quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
