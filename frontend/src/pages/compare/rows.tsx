import { useMemo } from "preact/hooks";
import type { CompareResponse, CompareTable } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { CallStacks } from "../../model/stacks/call_stacks";
import { Segmented } from "../shared/controls/choices";
import { DifferenceRows, onlySide, type Compared } from "./difference_rows";
import { partLabel } from "./charts/waterfall";
import { keysOf, ROW_WORDS, type PartProps } from "./params";

const TABLE_PX = 340;

export type Parts = Pick<CompareResponse, "tables"> &
  Partial<Pick<CompareResponse, "stacks">>;

export function PartRows(
  props: PartProps & {
    readonly parts: Parts;
    readonly culprits: ReadonlySet<string>;
    readonly about: Readonly<Record<string, unknown>>;
  },
) {
  const { params, change, parts } = props;
  const known = keysOf(ROW_WORDS).filter((by) =>
    by === "stack" ? parts.stacks !== undefined : tableBy(parts, by) !== undefined,
  );
  const rows = known.includes(params.rows) ? params.rows : (known[0] ?? "line");
  const of = useMemo(() => comparedBy(parts, rows), [parts, rows]);
  const alone = onlySide(of)?.toUpperCase() ?? null;
  return (
    <section aria-label="Difference as a table">
      <DifferenceRows
        {...props}
        of={of}
        heightPx={TABLE_PX}
        {...(rows === "stack"
          ? {
              details: (row: number) => <pre class="table-scroll">{of.texts[row]}</pre>,
            }
          : {})}
      >
        <h2>{alone === null ? "Difference by" : `Memory of ${alone} alone by`}</h2>
        <Segmented
          label="Group by"
          options={known}
          chosen={rows}
          words={ROW_WORDS}
          onChoose={(one) => change({ rows: one })}
        />
      </DifferenceRows>
    </section>
  );
}

function tableBy({ tables }: Parts, by: string): CompareTable | undefined {
  return tables.find((one) => one.by === by && one.labels.length > 0);
}

export function comparedStacks(stacks: CompareResponse["stacks"]): CallStacks {
  const module = new Int32Array(stacks.aBytes.length).fill(-1);
  return new CallStacks({ ...stacks, module, numStacks: stacks.aBytes.length });
}

export function about({
  reference,
  device,
  moment,
  run,
}: CompareResponse["a"]): unknown {
  return { run: run.name, history: reference.id, device, moment: moment.moment };
}

export function comparedBy(parts: Parts, by: keyof typeof ROW_WORDS): Compared {
  const found =
    by === "stack" && parts.stacks !== undefined
      ? byStack(parts.stacks)
      : byTable(tableBy(parts, by));
  const { aBytes: a, bBytes: b, aBlocks, bBlocks } = found;
  const bothBlocks = { aBlocks, bBlocks };
  return {
    ...{ key: by, quantity: "bytes", unit: "bytes", title: TITLES[by] },
    ...{ a, b, names: found.names, texts: found.texts },
    // Tracked steps have no blocks.
    ...(aBlocks.length > 0 ? ofBlocks(bothBlocks) : { more: [], exported: [] }),
    only: Array.from(a, (_, row) =>
      aBlocks[row] === 0 ? "b" : bBlocks[row] === 0 ? "a" : "",
    ),
  };
}

function ofBlocks({
  aBlocks,
  bBlocks,
}: Pick<CompareTable, "aBlocks" | "bBlocks">): Pick<Compared, "more" | "exported"> {
  const number = (blocks: Int32Array, row: number): string =>
    formatInteger(blocks[row] ?? 0);
  return {
    more: [
      {
        ...{ key: "blocks", title: "Blocks", hint: "Live blocks of A and of B" },
        ...{ numeric: true, width: "112px" },
        cell: (row) => ({ text: `${number(aBlocks, row)} → ${number(bBlocks, row)}` }),
      },
    ],
    exported: [
      { key: "a_blocks", values: aBlocks },
      { key: "b_blocks", values: bBlocks },
    ],
  };
}

function byStack(answer: CompareResponse["stacks"]) {
  const stacks = comparedStacks(answer);
  const rows = Array.from(answer.aBytes, (_, row) => row);
  return {
    ...answer,
    names: rows.map((row) => stackWords(stacks, row)),
    texts: rows.map((row) => stacks.text(row)),
  };
}

const NO_TABLE = {
  labels: [] as readonly string[],
  ...{ aBytes: new Float64Array(), bBytes: new Float64Array() },
  ...{ aBlocks: new Int32Array(), bBlocks: new Int32Array() },
};

function byTable(table: CompareTable | undefined) {
  const { labels, ...columns } = table ?? NO_TABLE;
  const names = labels.map((label) => partLabel(table?.by ?? "line", label));
  return { ...columns, names, texts: names };
}

const TITLES: Readonly<Record<keyof typeof ROW_WORDS, string>> = {
  line: "Allocated at",
  stack: "Allocated at, called from",
  module: "Module",
  category: "Category",
  size: "Size of the blocks",
};

/** The line and its callers: stacks of one line differ in their callers. */
function stackWords(stacks: CallStacks, row: number): string {
  const callers = Array.from(stacks.path(row, "user")).slice(0, -1).reverse();
  const from = callers.slice(0, 3).map((frame) => stacks.frameLabel(frame));
  return [stacks.stackLabel(row), ...from].join("  ←  ");
}
