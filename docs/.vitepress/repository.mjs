/** Where people read the code: `repository` of package.json without what only git needs; undefined if that is not the address of a page. */
export function pageOf(repository) {
  const url = (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, "");
  return url?.startsWith("https://") ? url : undefined;
}
