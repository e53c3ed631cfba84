/** A line: in at the end, out at the front, both in constant time. */
export class Fifo<Item> {
  #items: (Item | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** Lets an item be the next one out. */
  pushFront(item: Item): void {
    if (this.#head > 0) {
      this.#head--;
      this.#items[this.#head] = item;
    } else {
      this.#items.unshift(item);
    }
  }

  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** What stands in the line, first to last. */
  items(): Item[] {
    return this.#items.slice(this.#head) as Item[];
  }

  /** Empties the line and gives what stood in it. */
  drain(): Item[] {
    const items = this.items();
    this.#items = [];
    this.#head = 0;
    return items;
  }
}
