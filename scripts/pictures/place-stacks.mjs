const root = new URL("../../", import.meta.url).href;

/** Lets the stacks of errors look as if the shop were installed in that folder, wherever this repository is. */
export function placeStacksIn(folder) {
  const placed = (file) =>
    file
      .replace(`${root}scripts/pictures/shop.mjs`, `${folder}/src/tasks.js`)
      .replace(root, `${folder}/node_modules/hathi/`);
  Error.prepareStackTrace = (error, frames) => {
    const lines = frames.map((frame) => {
      const place = `${placed(frame.getFileName() ?? "native")}:${frame.getLineNumber()}:${frame.getColumnNumber()}`;
      const name = frame.getFunctionName();
      return name === null ? `    at ${place}` : `    at ${name} (${place})`;
    });
    return [String(error), ...lines].join("\n");
  };
}
