// Loaded before everything else: the wall clock of this process starts an hour fast, or right, and can be moved.
const RealDate = Date;
const hour = 3_600_000;
let offset = process.env.CLOCK_STARTS_FAST ? hour : 0;

globalThis.Date = class extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + offset);
    else super(...parts);
  }
  static now() {
    return RealDate.now() + offset;
  }
};
globalThis.moveClock = (ms) => {
  offset += ms;
};
