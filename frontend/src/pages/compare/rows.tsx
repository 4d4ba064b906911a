/** Two moments as a table: by line, module, category or stack. */

import { useMemo } from "preact/hooks";
import type { CompareResponse } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { categoryLabel } from "../../model/category";
import { CallStacks } from "../../model/stacks/call_stacks";
import { Segmented } from "../shared/controls/choices";
import { DifferenceRows, type Compared } from "./difference_rows";
import { keysOf, ROW_WORDS } from "./params";
import type { DifferenceProps } from "./two";

const TABLE_PX = 420;

export function MomentRows(props: DifferenceProps) {
  const { params, change, answer } = props;
  const of = useMemo(() => comparedBy(answer, params.rows), [answer, params.rows]);
  return (
    <section aria-label="Difference as a table">
      <DifferenceRows
        {...props}
        of={of}
        heightPx={TABLE_PX}
        about={{ match: params.match, a: about(answer.a), b: about(answer.b) }}
        {...(params.rows === "stack"
          ? {
              details: (row: number) => (
                <pre class="compare-stack">{of.texts[row]}</pre>
              ),
            }
          : {})}
      >
        <h2>Difference by</h2>
        <Segmented
          label="By what"
          options={keysOf(ROW_WORDS)}
          chosen={params.rows}
          words={(one) => ROW_WORDS[one]}
          onChoose={(rows) => change({ rows })}
        />
      </DifferenceRows>
    </section>
  );
}

/** Stacks of both sides as one set, for labels and trees. */
export function comparedStacks({ stacks }: CompareResponse): CallStacks {
  const module = new Int32Array(stacks.aBytes.length).fill(-1);
  return new CallStacks({ ...stacks, module, numStacks: stacks.aBytes.length });
}

/** Which moment a side is, in exported files. */
export function about({
  reference,
  device,
  moment,
  run,
}: CompareResponse["a"]): unknown {
  return { run: run.name, history: reference.id, device, moment: moment.moment };
}

export function comparedBy(
  answer: CompareResponse,
  by: keyof typeof ROW_WORDS,
): Compared {
  const found = by === "stack" ? byStack(answer) : byTable(answer, by);
  const { aBlocks, bBlocks } = found;
  return {
    ...{ key: by, quantity: "bytes", unit: "bytes" },
    ...found,
    only: Array.from(aBlocks, (num, row) =>
      num === 0 ? "b" : bBlocks[row] === 0 ? "a" : "",
    ),
    more: [
      {
        ...{ key: "blocks", title: "Blocks", hint: "Live blocks of A and of B" },
        ...{ numeric: true, width: "112px" },
        cell: (row) => ({
          text: `${formatInteger(aBlocks[row] ?? 0)} → ${formatInteger(bBlocks[row] ?? 0)}`,
        }),
      },
    ],
    exported: [
      { key: "a_blocks", values: aBlocks },
      { key: "b_blocks", values: bBlocks },
    ],
  };
}

function byStack(answer: CompareResponse) {
  const stacks = comparedStacks(answer);
  const { aBytes: a, bBytes: b, aBlocks, bBlocks } = answer.stacks;
  const rows = Array.from(a, (_, row) => row);
  return {
    title: "Allocated at, called from",
    names: rows.map((row) => stackWords(stacks, row)),
    texts: rows.map((row) => stacks.text(row)),
    ...{ a, b, aBlocks, bBlocks },
  };
}

function byTable(answer: CompareResponse, by: string) {
  const table = answer.tables.find((one) => one.by === by);
  const labels = table?.labels ?? [];
  const names = by === "category" ? labels.map(categoryLabel) : labels;
  return {
    title: TITLES[by] ?? "",
    ...{ names, texts: names },
    a: table?.aBytes ?? new Float64Array(),
    b: table?.bBytes ?? new Float64Array(),
    aBlocks: table?.aBlocks ?? new Int32Array(),
    bBlocks: table?.bBlocks ?? new Int32Array(),
  };
}

const TITLES: Readonly<Record<string, string>> = {
  line: "Allocated at",
  module: "Module",
  category: "Category",
  size: "Size of the blocks",
};

/** The line, and who called it: stacks of one line differ above it. */
function stackWords(stacks: CallStacks, row: number): string {
  const callers = Array.from(stacks.path(row, "user")).slice(0, -1).reverse();
  const from = callers.slice(0, 3).map((frame) => stacks.frameLabel(frame));
  return [stacks.stackLabel(row), ...from].join("  ←  ");
}
