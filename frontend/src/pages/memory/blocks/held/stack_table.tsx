import { useMemo } from "preact/hooks";
import { formatInteger, formatShare, type ByteUnit } from "../../../../base/bytes";
import { stackMatches } from "../../../../model/block_search";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import {
  bytesColumn,
  numberColumn,
  textColumn,
  type RowColumn,
} from "../../../../widgets/row_table/columns";
import { SortedTable } from "../../../../widgets/row_table/sorted_table";
import type { Blocks } from "../use_blocks";
import type { LiveStacks, HeldColours } from "./held";

export function StackTable(props: {
  readonly of: Blocks;
  readonly label: string;
  /** By row. */
  readonly stack: Int32Array;
  /** Zero rows are left out; null: none is. */
  readonly bytes: Float64Array | null;
  readonly columns: readonly RowColumn[];
  /** Key of the sort column, largest first. */
  readonly by: string;
  readonly empty: string;
  readonly heightPx: number;
}) {
  const { of, stack, bytes } = props;
  const { stacks: found } = of.search;
  const lit = of.state.stack;
  const selected = lit === null ? -1 : stack.indexOf(lit);
  return (
    <SortedTable
      {...props}
      numRows={stack.length}
      usual={{ key: props.by, descending: true }}
      shows={(row) =>
        (bytes === null || (bytes[row] ?? 0) > 0) &&
        (found === null || stackMatches(found, stack[row] ?? -1))
      }
      selected={selected < 0 ? null : selected}
      onSelect={(row) => {
        const one = stack[row] ?? -1;
        of.actions.set({ stack: one === lit || one < 0 ? null : one });
      }}
      empty={found === null ? props.empty : "Nothing matches."}
      steady
    />
  );
}

export function placeColumn(
  stack: Int32Array,
  stacks: CallStacks | null,
  colourOf: (row: number) => string,
): RowColumn {
  const labels = Array.from(stack, (one) => stacks?.stackLabel(one) ?? "");
  return textColumn(
    "place",
    "Allocated at",
    "minmax(96px, 1fr)",
    labels,
    "The line of your own code in the stack; click to light its blocks",
    (text, row) => {
      const title = stacks?.text(stack[row] ?? -1) ?? "";
      return { text, title: title === "" ? text : title, swatch: colourOf(row) };
    },
  );
}

export function holderColumns(
  { stack, stackBytes: bytes, stackBlocks: blocks, stackCategory }: LiveStacks,
  stacks: CallStacks,
  { palette, rows }: HeldColours,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const total = bytes.reduce((sum, one) => sum + one, 0);
  const own = rows({ stack, stackCategory });
  const colourOf = (slot: number): string => palette[own[slot] ?? -1] ?? "#888888";
  return [
    bytesColumn("bytes", "Live", "68px", bytes, byteUnit, {
      colourOf,
      hint: "Bytes that are live at this moment, as requested",
      more: (slot) => formatShare(bytes[slot] ?? 0, total),
    }),
    numberColumn(
      "blocks",
      "Blocks",
      "44px",
      blocks ?? bytes,
      (one) => ({ text: blocks === null ? "–" : formatInteger(one) }),
      "Live blocks; counted once the pointer rests",
    ),
    placeColumn(stack, stacks, colourOf),
  ];
}

export function HoldersTable(props: {
  readonly of: Blocks;
  readonly stacks: CallStacks;
  readonly heightPx: number;
}) {
  const { of, stacks, heightPx } = props;
  const { byteUnit } = of.view;
  const { value: held } = of.held;
  const columns = useMemo(
    () => (held === null ? [] : holderColumns(held, stacks, of.colours, byteUnit)),
    [held, stacks, of.colours, byteUnit],
  );
  if (held === null) return null;
  return (
    <StackTable
      of={of}
      columns={columns}
      heightPx={heightPx}
      stack={held.stack}
      bytes={held.stackBytes}
      label="Who holds the memory"
      by="bytes"
      empty="Nothing is live here."
    />
  );
}
