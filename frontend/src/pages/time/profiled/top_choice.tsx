/** How many rows of a sorted table are shown: the first 10, 20, 50, or all of them. */

import { Segmented } from "../../shared/controls/choices";
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
    <Segmented
      label="How many rows"
      title="Top"
      options={TOPS}
      chosen={chosen}
      words={(top) => [
        top,
        top === "all"
          ? "All rows that were read"
          : `The first ${top} rows as the table is sorted`,
      ]}
      onChoose={(top) => setState({ top })}
    />
  );
}
