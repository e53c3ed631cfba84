import { StopSwitch } from "./stop/stop-switch.ts";

/** The name that a pool's locks carry, and the switch that stops what runs under it. */
export class Identity {
  readonly #onAbort: (stopped: StopSwitch, reason: Error) => void;
  #id: string;
  readonly #formerIds: string[] = [];
  #stopSwitch: StopSwitch;

  /** `onAbort` gets the switch that was thrown, and why. */
  constructor(id: string, onAbort: (stopped: StopSwitch, reason: Error) => void) {
    this.#id = id;
    this.#onAbort = onAbort;
    this.#stopSwitch = this.#makeSwitch();
  }

  get id(): string {
    return this.#id;
  }

  /** This name and all it had before. */
  get ids(): readonly string[] {
    return [...this.#formerIds, this.#id];
  }

  get stopSwitch(): StopSwitch {
    return this.#stopSwitch;
  }

  /** Goes on under another name; gives the switch for what still runs under the former. */
  renew(id: string): StopSwitch {
    const former = this.#stopSwitch;
    this.#formerIds.push(this.#id);
    this.#id = id;
    this.#stopSwitch = this.#makeSwitch();
    return former;
  }

  #makeSwitch(): StopSwitch {
    const made: StopSwitch = new StopSwitch((reason) => this.#onAbort(made, reason));
    return made;
  }
}
