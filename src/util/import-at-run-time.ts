/** Imports a file URL or a package that is chosen at run time. The comments tell bundlers to leave the import as it is. */
export function importAtRunTime(specifier: string): Promise<unknown> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ specifier);
}
