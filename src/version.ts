/** The version of this package, as in its package.json. */
export const version = "0.1.0";
