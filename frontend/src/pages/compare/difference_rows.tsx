import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import type { TableRows } from "../../api/types.gen";
import { Switch } from "../shared/controls/choices";
import { AnswerTable } from "../shared/table/answer_table";
import { COMPARE, type PartProps } from "./params";

/** Rows of one side alone; null: there is no such choice, as one side knows nothing. */
export function sidesOf({ columns }: TableRows) {
  const of = (side: string) => columns.find(({ title }) => title === side)?.numbers;
  const [a, b] = [of("A"), of("B")];
  if (a === undefined || b === undefined) return null;
  return (only: "all" | "a" | "b", row: number): boolean =>
    only === "all" || Number.isNaN((only === "a" ? b : a)[row]);
}

export function DifferenceRows(
  props: PartProps & {
    readonly table: TableRows;
    readonly heightPx: number;
    readonly about: Readonly<Record<string, unknown>>;
    readonly culprits?: ReadonlySet<string>;
    readonly children: ComponentChildren;
    readonly details?: (row: number) => ComponentChildren;
  },
) {
  const { view, table, params, details, children, about, ...rest } = props;
  const [selected, setSelected] = useState<readonly [TableRows, number] | null>(null);
  const sides = sidesOf(table);
  const only = sides === null ? "all" : params.only;
  const shows = useCallback(
    (row: number) => sides?.(only, row) !== false,
    [table, only],
  );
  const row = selected?.[0] === table ? selected[1] : null;
  return (
    <>
      <AnswerTable
        {...rest}
        view={view}
        table={table}
        shows={shows}
        word="sort"
        find={{ label: "Find in the table", word: "find", commands: view.commands }}
        head={
          <>
            {children}
            {sides !== null && (
              <Switch view={view} of={COMPARE.only} label="Rows shown" />
            )}
          </>
        }
        about={{ only, ...about }}
        shell={view}
        {...(details && {
          selected: row,
          onSelect: (nextRow: number) => setSelected([table, nextRow]),
        })}
      />
      {row !== null && details?.(row)}
    </>
  );
}
