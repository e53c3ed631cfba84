export type { Profile, Settings } from "./cluster-config.ts";
export { EmbeddedError, type EmbeddedErrorCode } from "./embedded-error.ts";
export type { EmbeddedOptions } from "./options.ts";
export { type EmbeddedServer, startEmbedded } from "./start-embedded.ts";
