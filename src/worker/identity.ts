import { StopSwitch } from "./stop-switch.ts";

/** The name that a pool's locks carry, and the switch that stops what runs under it. */
export class Identity {
  #id: string;
  #stopSwitch = new StopSwitch();

  constructor(id: string) {
    this.#id = id;
  }

  get id(): string {
    return this.#id;
  }

  get stopSwitch(): StopSwitch {
    return this.#stopSwitch;
  }

  /** Goes on under another name; gives the switch for what still runs under the former. */
  renew(id: string): StopSwitch {
    const former = this.#stopSwitch;
    this.#id = id;
    this.#stopSwitch = new StopSwitch();
    return former;
  }
}
