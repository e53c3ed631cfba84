export function runTests(options: {
  readonly root: string;
  readonly filters: readonly string[];
  readonly environment: { readonly [name: string]: string };
  readonly isRepeating?: boolean;
}): { readonly status: number; readonly unstable: readonly string[] };
