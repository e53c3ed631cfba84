export function installProgram(program: string, name: string): string | undefined;
export function whyInstall(
  env?: NodeJS.ProcessEnv,
  uid?: number,
  exists?: (path: string) => boolean,
): string | undefined;
