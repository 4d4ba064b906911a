/** Who holds the memory at the moment looked at, stack by stack. */

import { useMemo } from "preact/hooks";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { barOf, longestOf, numberColumn } from "../../../../widgets/row_table/columns";
import type { RowColumn } from "../../../../widgets/row_table/row_table";
import type { Blocks } from "../use_blocks";
import type { Held, HeldColours } from "./held";
import { placeColumn, StackTable } from "./stack_table";

export function holderColumns(
  held: Held,
  stacks: CallStacks,
  { palette, rows }: HeldColours,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const { bytes, blocks } = held;
  const total = bytes.reduce((sum, one) => sum + one, 0);
  const most = longestOf(bytes);
  const own = rows(held);
  const colourOf = (slot: number): string => palette[own[slot] ?? -1] ?? "#888888";
  return [
    numberColumn(
      ...(["bytes", "Live", "68px", bytes] as const),
      (one, slot) => ({
        text: formatBytes(one, byteUnit),
        title: `${formatBytesExact(one)}, ${formatShare(one, total)}`,
        bar: barOf(one, most, colourOf(slot)),
      }),
      "Bytes that are live at this moment, as requested",
    ),
    numberColumn(
      ...(["blocks", "Blocks", "44px", blocks ?? bytes] as const),
      (one) => ({ text: blocks === null ? "–" : formatInteger(one) }),
      "Live blocks; counted once the pointer rests",
    ),
    placeColumn(held.stack, stacks, colourOf),
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
      {...{ of, columns, heightPx, stack: held.stack, bytes: held.bytes }}
      label="Who holds the memory"
      by="bytes"
      empty="Nothing is live here."
    />
  );
}
