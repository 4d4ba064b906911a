import { useMemo } from "preact/hooks";
import type { TableRows } from "../../../../api/types.gen";
import { stackMatches } from "../../../../model/block_search";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import type { MenuItem } from "../../../../widgets/menu/menu";
import { longestOf } from "../../../../widgets/row_table/columns";
import { AnswerTable } from "../../../shared/table/answer_table";
import { filled, numbersOf, type ColumnLook } from "../../../shared/table/columns";
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
      {...(matches !== null && { empty: "Nothing matches." })}
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

/** Who holds the memory at the pointer. */
export function holderTable(
  header: TableRows,
  { stack, stackBytes, stackBlocks, stackCategory }: LiveStacks,
  { rows }: Pick<HeldColours, "rows">,
): TableRows {
  const table = filled(header, stack.length, {
    bytes: {
      numbers: stackBytes,
      longest: longestOf(stackBytes),
      sum: stackBytes.reduce((sum, bytes) => sum + bytes, 0),
    },
    blocks: {
      numbers: Float64Array.from(stack, (_, row) => stackBlocks?.[row] ?? NaN),
    },
    allocated_at: { numbers: Float64Array.from(stack) },
  });
  return { ...table, colours: Array.from(rows({ stack, stackCategory }), String) };
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
  const { holderTable: holderHeader } = of.open.facts;
  const table = useMemo(
    () => liveStacks && holderTable(holderHeader, liveStacks, of.colours),
    [holderHeader, liveStacks, of.colours],
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
