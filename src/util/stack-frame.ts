/** True for a line of a stack that names a place in the code. */
export function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}

/** True for a frame of the application itself: neither of a package nor of Node. */
export function isOwnFrame(line: string): boolean {
  return isFrame(line) && !/node_modules|node:|\(<anonymous>\)|\(native\)/.test(line);
}
