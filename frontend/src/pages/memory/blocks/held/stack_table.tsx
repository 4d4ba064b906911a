/** Stacks with their numbers: a row lights its blocks; the search leaves what it found. */

import { useMemo, useState } from "preact/hooks";
import { stackMatches } from "../../../../model/block_search";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { textColumn } from "../../../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import { useSort } from "../../../../widgets/row_table/use_sort";
import type { Blocks } from "../use_blocks";

export function StackTable(props: {
  readonly of: Blocks;
  readonly label: string;
  /** By row. */
  readonly stack: Int32Array;
  /** Rows without anything are left out; null: none is. */
  readonly bytes: Float64Array | null;
  readonly columns: readonly RowColumn[];
  /** Key of the column that rows are sorted by, the most first. */
  readonly by: string;
  readonly empty: string;
  readonly heightPx: number;
}) {
  const { of, stack, bytes, columns, by } = props;
  const { stacks: found } = of.search;
  const [word, setWord] = useState<string | null>(null);
  const usual = { key: by, descending: true };
  const sorted = useSort(columns, stack.length, usual, word ?? undefined, setWord);
  const rows = useMemo(
    () =>
      sorted.rows.filter(
        (row) =>
          (bytes === null || (bytes[row] ?? 0) > 0) &&
          (found === null || stackMatches(found, stack[row] ?? -1)),
      ),
    [sorted.rows, found, bytes, stack],
  );
  const lit = of.state.stack;
  const selected = lit === null ? -1 : stack.indexOf(lit);
  return (
    <RowTable
      label={props.label}
      columns={columns}
      {...sorted}
      rows={rows}
      selected={selected < 0 ? null : selected}
      onSelect={(row) => {
        const one = stack[row] ?? -1;
        of.actions.set({ stack: one === lit || one < 0 ? null : one });
      }}
      empty={found === null ? props.empty : "Nothing of it matches."}
      heightPx={props.heightPx}
      steady
    />
  );
}

/** Where the stacks of the rows allocated. */
export function placeColumn(
  stack: Int32Array,
  stacks: CallStacks | null,
  colourOf: (row: number) => string,
): RowColumn {
  const labels = Array.from(stack, (one) => stacks?.stackLabel(one) ?? "");
  return textColumn(
    ...(["place", "Allocated at", "minmax(96px, 1fr)", labels] as const),
    "The line of your own code in the stack; click to light its blocks",
    (text, row) => {
      const title = stacks?.text(stack[row] ?? -1) ?? "";
      return { text, title: title === "" ? text : title, swatch: colourOf(row) };
    },
  );
}
