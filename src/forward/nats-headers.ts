const encoder = new TextEncoder();

/** The headers of a NATS message, with what its client asks of them: they cannot be made without its package otherwise. */
export class NatsHeaders {
  readonly #values = new Map<string, string>();

  constructor(values: Readonly<Record<string, string>>) {
    for (const [key, value] of Object.entries(values)) this.set(key, value);
  }

  set(key: string, value: string): void {
    this.#values.set(key, value.replaceAll(/[\r\n]/g, " "));
  }

  append(key: string, value: string): void {
    this.set(key, value);
  }

  get(key: string): string {
    return this.#values.get(key) ?? "";
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  keys(): string[] {
    return [...this.#values.keys()];
  }

  encode(): Uint8Array {
    const lines = [...this.#values].map(([key, value]) => `${key}: ${value}\r\n`);
    return encoder.encode(`NATS/1.0\r\n${lines.join("")}\r\n`);
  }
}
