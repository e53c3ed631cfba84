import { makeCliPage } from "./cli-page.mjs";
import { makeErrorsPage } from "./errors-page.mjs";
import { makeEventsPage } from "./events-page.mjs";
import { makeFunctionsPage } from "./functions-page.mjs";
import { makeOptionsPage } from "./options-page.mjs";
import { quoteResults } from "./results-quote.mjs";
import { readSource, readSourceIfThere } from "./source.mjs";
import { makeSqlPage } from "./sql-page.mjs";

/** The generated pages by their names in docs. What has to be run to be known is handed in, from a build or from the source. */
export function makeReference({ commands, tables }) {
  return {
    "reference/options.md": makeOptionsPage(tables),
    "reference/functions.md": makeFunctionsPage(),
    "reference/cli.md": makeCliPage(commands),
    "reference/sql.md": makeSqlPage(),
    "reference/events.md": makeEventsPage(),
    "reference/errors.md": makeErrorsPage(),
    "comparison.md": quoteResults(readSource("docs/comparison.md"), readSourceIfThere("bench/RESULTS.md")),
  };
}
