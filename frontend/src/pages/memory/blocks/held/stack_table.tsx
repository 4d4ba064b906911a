import { useMemo } from "preact/hooks";
import type { TableRows } from "../../../../api/types.gen";
import { stackMatches } from "../../../../model/block_search";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import type { MenuItem } from "../../../../widgets/menu/menu";
import { longestOf } from "../../../../widgets/row_table/columns";
import { AnswerTable } from "../../../shared/table/answer_table";
import {
  declared,
  declaredTable,
  numbersOf,
  type ColumnLook,
} from "../../../shared/table/columns";
import type { Blocks } from "../use_blocks";
import type { LiveStacks, HeldColours } from "./held";

interface StackTableProps extends Pick<ColumnLook, "colours" | "titles"> {
  readonly of: Blocks;
  /** With a column of stacks, `allocated_at`. */
  readonly table: TableRows;
  readonly heightPx: number;
  /** Rows without a positive number there are left out. */
  readonly needed?: string;
  readonly files?: readonly MenuItem[];
}

/** A click lights the blocks of a stack, wherever they are drawn. */
export function StackTable(props: StackTableProps) {
  const { of, table, needed } = props;
  const { stacks: matches } = of.search;
  const lit = of.state.stack;
  const stack = numbersOf(table, "allocated_at");
  const bytes = needed === undefined ? null : numbersOf(table, needed);
  const selected = lit === null ? -1 : stack.indexOf(lit);
  return (
    <AnswerTable
      {...props}
      view={of.view}
      table={matches === null ? table : { ...table, empty: "Nothing matches." }}
      stacks={of.stacks}
      culprits={of.culprits}
      shows={(row) =>
        (bytes === null || (bytes[row] ?? 0) > 0) &&
        (matches === null || stackMatches(matches, stack[row] ?? -1))
      }
      selected={selected < 0 ? null : selected}
      onSelect={(row) => {
        const chosen = stack[row] ?? -1;
        of.actions.set({ stack: chosen === lit || chosen < 0 ? null : chosen });
      }}
      steady
    />
  );
}

/** Who holds the memory at the pointer: only the browser knows. */
export function holderTable(
  { stack, stackBytes: bytes, stackBlocks: blocks, stackCategory }: LiveStacks,
  { rows }: Pick<HeldColours, "rows">,
): TableRows {
  const numRows = stack.length;
  return declaredTable({
    title: "Top holders",
    empty: "Nothing is live here.",
    usual: "bytes",
    numRows,
    colours: Array.from(rows({ stack, stackCategory }), String),
    columns: [
      declared({
        key: "bytes",
        title: "Live",
        help: "Bytes that are live at this moment, as requested",
        unit: "bytes",
        numbers: bytes,
        bar: "row",
        longest: longestOf(bytes),
        sum: bytes.reduce((sum, value) => sum + value, 0),
        shareOf: "of what is live",
      }),
      declared({
        key: "blocks",
        title: "Blocks",
        help: "Live blocks; counted once the pointer rests",
        unit: "count",
        numbers:
          blocks === null
            ? new Float64Array(numRows).fill(NaN)
            : Float64Array.from(blocks),
        absent: "Counted once the pointer rests",
      }),
      declared({
        key: "allocated_at",
        title: "Allocated at",
        help: "The line of your own code in the stack; click to light its blocks",
        unit: "stack",
        numbers: Float64Array.from(stack),
        bar: "row",
      }),
    ],
  });
}

/** Colours of rows, by their place in the palette. */
export function paletteColours(palette: readonly string[]) {
  return Object.fromEntries(palette.map((colour, place) => [String(place), colour]));
}

export function HoldersTable(props: {
  readonly of: Blocks;
  readonly stacks: CallStacks;
  readonly heightPx: number;
}) {
  const { of, heightPx } = props;
  const { palette } = of.colours;
  const { value: liveStacks } = of.liveStacks;
  const table = useMemo(
    () => (liveStacks === null ? null : holderTable(liveStacks, of.colours)),
    [liveStacks, of.colours],
  );
  const colours = useMemo(() => paletteColours(palette), [palette]);
  if (table === null) return null;
  return (
    <StackTable
      of={of}
      table={table}
      colours={colours}
      needed="bytes"
      files={of.filesOf(liveStacks)}
      heightPx={heightPx}
    />
  );
}
