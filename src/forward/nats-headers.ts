const encoder = new TextEncoder();

/** Headers as the client of NATS sends them: it asks them for their bytes. They cannot be made without its package otherwise. */
export interface NatsHeaders {
  encode(): Uint8Array;
}

/** The values must not hold line breaks. */
export function natsHeaders(id: string, values: Readonly<Record<string, string>>): NatsHeaders {
  let text = `NATS/1.0\r\nNats-Msg-Id: ${id}\r\n`;
  for (const name in values) text += `${name}: ${values[name]}\r\n`;
  return { encode: () => encoder.encode(`${text}\r\n`) };
}
