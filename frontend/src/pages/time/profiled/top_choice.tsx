/** How many rows of a sorted table are shown: the first 10, 20, 50, or all of them. */

import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";

const TOPS = ["10", "20", "50", "all"] as const;
type Top = (typeof TOPS)[number];

function topOf(view: ViewProps): Top {
  return TOPS.find((one) => one === view.params.get("top")) ?? "all";
}

/** The first of `rows` that the address asks for. */
export function topRows(view: ViewProps, rows: readonly number[]): readonly number[] {
  const top = topOf(view);
  return top === "all" ? rows : rows.slice(0, Number(top));
}

/** The rest of a sentence that says of how many rows there are; "" where all are listed. */
export function listedWords(numShown: number, numRows: number): string {
  return numShown < numRows
    ? `; the first ${numShown.toLocaleString("en")} are listed`
    : "";
}

export function TopChoice({ view }: { readonly view: ViewProps }) {
  return (
    <Segmented
      label="How many rows"
      title="Top"
      options={TOPS}
      chosen={topOf(view)}
      words={(top) => [
        top,
        top === "all"
          ? "All rows that were read"
          : `The first ${top} rows as the table is sorted`,
      ]}
      onChoose={(top) => view.setParams({ top: top === "all" ? null : top })}
    />
  );
}
