/** Who holds the memory at the moment looked at, stack by stack. */

import type { ReadonlySignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import { OTHER_STACKS, type CallStacks } from "../../../../model/stacks/call_stacks";
import { stackMatches } from "../../../../model/block_search";
import { clicked, type Sort } from "../../../../model/shown_rows";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import type { Held, StackCategories } from "../state/held";

export interface HoldersProps {
  readonly held: ReadonlySignal<Held | null>;
  readonly stacks: CallStacks;
  readonly categories: StackCategories;
  /** By row of `FLAME_GROUPS`. */
  readonly palette: readonly string[];
  /** By stack: 1 where it was searched for; null: nothing was. */
  readonly found: Uint8Array | null;
  /** The stack that is lit. */
  readonly stack: number | null;
  readonly onStack: (stack: number | null) => void;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

/** Slots that hold anything, in the order of a column. */
export function holderRows(
  held: Held,
  stacks: CallStacks,
  found: Uint8Array | null,
  sort: Sort,
): readonly number[] {
  const rows: number[] = [];
  held.bytes.forEach((bytes, slot) => {
    const stack = held.stack[slot] ?? -1;
    if (!(bytes > 0)) return;
    if (found !== null && !stackMatches(found, stack)) return;
    rows.push(slot);
  });
  const sign = sort.descending ? -1 : 1;
  const bytesOf = (slot: number): number => held.bytes[slot] ?? 0;
  const byBytes = (a: number, b: number): number => bytesOf(b) - bytesOf(a) || a - b;
  if (sort.key === "place") {
    const label = (slot: number): string => stacks.stackLabel(held.stack[slot] ?? -1);
    return rows.sort(
      (a, b) => sign * label(a).localeCompare(label(b)) || byBytes(a, b),
    );
  }
  const values = sort.key === "blocks" ? held.blocks : held.bytes;
  if (values === null) return rows.sort(byBytes);
  return rows.sort(
    (a, b) => sign * ((values[a] ?? 0) - (values[b] ?? 0)) || byBytes(a, b),
  );
}

export function HoldersTable(props: HoldersProps) {
  const { stacks, categories, palette, found, byteUnit, heightPx } = props;
  const held = props.held.value;
  const [sort, setSort] = useState<Sort>({ key: "bytes", descending: true });
  const rows = useMemo(
    () => (held === null ? [] : holderRows(held, stacks, found, sort)),
    [held, stacks, found, sort],
  );
  if (held === null) return null;
  const total = held.bytes.reduce((sum, bytes) => sum + bytes, 0);
  const most = held.bytes.reduce((high, bytes) => Math.max(high, bytes), 0);
  const columns = columnsOf({
    held,
    stacks,
    categories,
    palette,
    byteUnit,
    total,
    most,
  });
  const selected = props.stack === null ? -1 : held.stack.indexOf(props.stack);
  return (
    <RowTable
      label="Who holds the memory"
      columns={columns}
      rows={rows}
      selected={selected < 0 ? null : selected}
      onSelect={(slot) => {
        const stack = held.stack[slot] ?? OTHER_STACKS;
        props.onStack(stack === props.stack || stack < 0 ? null : stack);
      }}
      sort={sort}
      onSort={(key) => setSort(clicked(sort, key, key === "place"))}
      empty={found === null ? "Nothing is live here." : "Nothing that is live matches."}
      heightPx={heightPx}
      steady
    />
  );
}

interface ColumnsInput {
  readonly held: Held;
  readonly stacks: CallStacks;
  readonly categories: StackCategories;
  readonly palette: readonly string[];
  readonly byteUnit: ByteUnit;
  readonly total: number;
  readonly most: number;
}

function columnsOf(input: ColumnsInput): readonly RowColumn[] {
  const { held, stacks, categories, palette, byteUnit, total, most } = input;
  const colourOf = (slot: number): string =>
    palette[categories.get(held.stack[slot] ?? -1) ?? -1] ??
    palette.at(-1) ??
    "#888888";
  const share = (bytes: number): string => formatShare(bytes, total);
  return [
    {
      key: "bytes",
      title: "Live",
      hint: "Bytes that are live at this moment, as asked for",
      numeric: true,
      width: "68px",
      sortable: true,
      cell: (slot) => {
        const bytes = held.bytes[slot] ?? NaN;
        return {
          text: formatBytes(bytes, byteUnit),
          title: `${formatBytesExact(bytes)}, ${share(bytes)}`,
          bar: { share: most > 0 ? bytes / most : 0, colour: colourOf(slot) },
        };
      },
    },
    {
      key: "blocks",
      title: "Blocks",
      hint: "Live blocks; counted once the pointer rests",
      numeric: true,
      width: "44px",
      sortable: true,
      cell: (slot) => {
        const blocks = held.blocks?.[slot];
        return { text: blocks === undefined ? "–" : formatInteger(blocks) };
      },
    },
    {
      key: "place",
      title: "Allocated at",
      hint: "The line of your own code in the stack; click to light its blocks",
      numeric: false,
      width: "minmax(96px, 1fr)",
      sortable: true,
      cell: (slot) => {
        const stack = held.stack[slot] ?? -1;
        return {
          text: stacks.stackLabel(stack),
          title: stacks.text(stack) || stacks.stackLabel(stack),
          swatch: colourOf(slot),
        };
      },
    },
  ];
}
