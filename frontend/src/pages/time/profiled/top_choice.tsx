/** How many rows of a sorted table are shown: the first 10, 20, 50, or all of them. */

import { Choice } from "../../shared/controls/choices";
import { oneOf, readState, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";

const TOPS = ["10", "20", "50", "all"] as const;
const WORDS = { top: oneOf("top", TOPS, "all") };

/** The first of `rows` that the address asks for. */
export function topRows(view: ViewProps, rows: readonly number[]): readonly number[] {
  const { top } = readState(WORDS, view.params);
  return top === "all" ? rows : rows.slice(0, Number(top));
}

/** The rest of a sentence that says of how many rows there are; "" where all are listed. */
export function listedWords(numShown: number, numRows: number): string {
  return numShown < numRows
    ? `; the first ${numShown.toLocaleString("en")} are listed`
    : "";
}

export function TopChoice({ view }: { readonly view: ViewProps }) {
  const [{ top: chosen }, setState] = usePageState(view, WORDS);
  return (
    <Choice
      label="Top"
      value={chosen}
      onChange={(word) => setState({ top: TOPS.find((one) => one === word) ?? "all" })}
    >
      {TOPS.map((top) => (
        <option key={top} value={top}>
          {top}
        </option>
      ))}
    </Choice>
  );
}
