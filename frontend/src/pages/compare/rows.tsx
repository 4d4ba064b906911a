import { useMemo } from "preact/hooks";
import type { CompareResponse, CompareTable, TableRows } from "../../api/types.gen";
import { CallStacks } from "../../model/stacks/call_stacks";
import { Segmented } from "../shared/controls/choices";
import { DifferenceRows, sidesOf } from "./difference_rows";
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
  const byKey = new Map(parts.tables.map((part) => [part.by, part]));
  const options = keysOf(ROW_WORDS).filter((by) => byKey.has(by));
  const by = options.includes(params.rows) ? params.rows : options[0];
  const chosen = by && byKey.get(by);
  const table = useMemo(() => chosen && namedRows(chosen, parts), [chosen, parts]);
  if (table === undefined) return null;
  const only = table.columns.find(({ title }) => title === "A" || title === "B");
  return (
    <section aria-label="Difference as a table">
      <DifferenceRows
        {...props}
        table={table}
        heightPx={TABLE_PX}
        {...(by === "stack" && {
          details: (row: number) => (
            <pre class="table-scroll">{table.columns[0]?.hints[row]}</pre>
          ),
        })}
      >
        <h2>
          {sidesOf(table) === null
            ? `Memory of ${only?.title ?? "neither"} alone by`
            : "Difference by"}
        </h2>
        <Segmented
          label="Group by"
          options={options}
          chosen={by ?? "line"}
          labels={ROW_WORDS}
          onChoose={(option) => change({ rows: option })}
        />
      </DifferenceRows>
    </section>
  );
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

/** Categories have labels here, and stacks their line and its callers. */
export function namedRows({ by, rows }: CompareTable, { stacks }: Parts): TableRows {
  const [name, ...columns] = rows.columns;
  if (name === undefined) return rows;
  if (by !== "stack" || stacks === undefined) {
    const texts = name.texts.map((text) => partLabel(by, text));
    return { ...rows, columns: [{ ...name, texts }, ...columns] };
  }
  const compared = comparedStacks(stacks);
  const all = [...stacks.aBytes.keys()];
  const texts = all.map((row) => stackWords(compared, row));
  const hints = all.map((row) => compared.text(row));
  return { ...rows, columns: [{ ...name, texts, hints }, ...columns] };
}

/** Stacks of one line differ in their callers. */
function stackWords(stacks: CallStacks, row: number): string {
  const callers = Array.from(stacks.path(row, "user")).slice(0, -1).reverse();
  const from = callers.slice(0, 3).map((frame) => stacks.frameLabel(frame));
  return [stacks.stackLabel(row), ...from].join("  ←  ");
}
