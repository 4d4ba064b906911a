/** Who holds the memory at the moment looked at, stack by stack. */

import { useMemo, useState } from "preact/hooks";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import { stackMatches } from "../../../../model/block_search";
import { OTHER_STACKS, type CallStacks } from "../../../../model/stacks/call_stacks";
import {
  barOf,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import { useSort } from "../../../../widgets/row_table/use_sort";
import type { Blocks } from "../use_blocks";
import type { Held, HeldColours } from "./held";

const BY_BYTES = { key: "bytes", descending: true };

export function holderColumns(
  { bytes, blocks, stack, ...held }: Held,
  stacks: CallStacks,
  { palette, rows }: HeldColours,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const total = bytes.reduce((sum, one) => sum + one, 0);
  const most = longestOf(bytes);
  const own = rows({ stack, ...held });
  const colourOf = (slot: number): string => palette[own[slot] ?? -1] ?? "#888888";
  const labels = Array.from(stack, (one) => stacks.stackLabel(one));
  return [
    numberColumn(
      ...(["bytes", "Live", "68px", bytes] as const),
      (one, slot) => ({
        text: formatBytes(one, byteUnit),
        title: `${formatBytesExact(one)}, ${formatShare(one, total)}`,
        bar: barOf(one, most, colourOf(slot)),
      }),
      "Bytes that are live at this moment, as asked for",
    ),
    numberColumn(
      ...(["blocks", "Blocks", "44px", blocks ?? bytes] as const),
      (one) => ({ text: blocks === null ? "–" : formatInteger(one) }),
      "Live blocks; counted once the pointer rests",
    ),
    textColumn(
      ...(["place", "Allocated at", "minmax(96px, 1fr)", labels] as const),
      "The line of your own code in the stack; click to light its blocks",
      (text, slot) => {
        const title = stacks.text(stack[slot] ?? -1) || text;
        return { text, title, swatch: colourOf(slot) };
      },
    ),
  ];
}

export function HoldersTable(props: {
  readonly of: Blocks;
  readonly stacks: CallStacks;
  readonly heightPx: number;
}) {
  const { held, colours, search, state, actions, view } = props.of;
  const { value: now } = held;
  const [word, setWord] = useState<string | null>(null);
  const columns = useMemo(
    () =>
      now === null ? [] : holderColumns(now, props.stacks, colours, view.byteUnit),
    [now, props.stacks, colours, view.byteUnit],
  );
  const num = now?.stack.length ?? 0;
  const sorted = useSort(columns, num, BY_BYTES, word ?? undefined, setWord);
  const { stacks: found } = search;
  const rows = useMemo(
    () =>
      sorted.rows.filter((slot) => {
        const sought = found === null || stackMatches(found, now?.stack[slot] ?? -1);
        return sought && (now?.bytes[slot] ?? 0) > 0;
      }),
    [sorted.rows, found, now],
  );
  if (now === null) return null;
  const selected = state.stack === null ? -1 : now.stack.indexOf(state.stack);
  return (
    <RowTable
      label="Who holds the memory"
      columns={columns}
      {...sorted}
      rows={rows}
      selected={selected < 0 ? null : selected}
      onSelect={(slot) => {
        const stack = now.stack[slot] ?? OTHER_STACKS;
        actions.set({ stack: stack === state.stack || stack < 0 ? null : stack });
      }}
      empty={found === null ? "Nothing is live here." : "Nothing that is live matches."}
      heightPx={props.heightPx}
      steady
    />
  );
}
