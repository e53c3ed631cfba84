// Loaded before a program: says where its servers listen.
import { Server } from "node:net";

const { emit } = Server.prototype;
Server.prototype.emit = function emitAndTell(event, ...args) {
  if (event === "listening") console.log(`listening on ${this.address().port}`);
  return emit.call(this, event, ...args);
};
