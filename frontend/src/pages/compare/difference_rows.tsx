import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Unit } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { searchOf } from "../../model/shown_rows";
import { originOf } from "../../model/words/origin";
import { ExportMenu } from "../../widgets/export/export_menu";
import { longestOf, tableOf, textColumn } from "../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../widgets/row_table/row_table";
import { useSort } from "../../widgets/row_table/use_sort";
import { Switch } from "../shared/controls/choices";
import { SearchBox } from "../shared/controls/search_box";
import type { ViewProps } from "../shared/view_props";
import { changes, sideColumns, type Sides } from "./difference_table";
import { COMPARE, type PartProps } from "./params";

type Values = Float64Array | Int32Array;

export interface Compared extends Sides {
  /** Names in exported files: of a row, and of the compared quantity with its unit. */
  readonly key: string;
  readonly quantity: string;
  readonly unit: Unit;
  readonly title: string;
  readonly names: readonly string[];
  readonly texts: readonly string[];
  readonly more: readonly RowColumn[];
  readonly exported: readonly { readonly key: string; readonly values: Values }[];
}

/** The only side with any value; null where both have some. */
export function onlySide({ a, b }: Pick<Compared, "a" | "b">): "a" | "b" | null {
  const [hasA, hasB] = [a.some(Number.isFinite), b.some(Number.isFinite)];
  return hasA === hasB ? null : hasA ? "a" : "b";
}

export function differenceColumns(
  of: Compared,
  look: Pick<ViewProps, "theme" | "byteUnit">,
  culprits?: ReadonlySet<string>,
): readonly RowColumn[] {
  const { names, texts, unit, quantity } = of;
  const change = changes(of);
  const longest = longestOf(change.filter(Number.isFinite));
  const sides = sideColumns(...([of, () => unit, look] as const), () => longest);
  const side = (key: "a" | "b"): RowColumn => ({
    ...sides[key],
    exported: { name: `${key}_${quantity}`, values: of[key] },
  });
  const name: RowColumn = {
    ...textColumn(
      "name",
      of.title,
      "minmax(180px, 1fr)",
      names,
      undefined,
      (text, row) => ({
        ...{ text, title: texts[row] ?? text },
        isCause: culprits?.has(text) === true,
      }),
    ),
    exported: { name: of.key, values: texts },
  };
  const alone = onlySide(of);
  if (alone !== null) return [name, side(alone)];
  return [
    name,
    side("a"),
    side("b"),
    {
      ...sides.change,
      exported: { name: `difference_${quantity}`, values: change },
    },
    sides.percent,
    ...of.more,
  ];
}

export function wantedRows(
  { names, texts, only }: Pick<Compared, "names" | "texts" | "only">,
  sorted: readonly number[],
  of: { readonly only: "all" | "a" | "b"; readonly find: string },
): readonly number[] {
  const search = searchOf(of.find);
  return sorted.filter((row) => {
    if (of.only !== "all" && only[row] !== of.only) return false;
    return search?.(`${names[row] ?? ""} ${texts[row] ?? ""}`) ?? true;
  });
}

export function DifferenceRows(
  props: PartProps & {
    readonly of: Compared;
    readonly heightPx: number;
    readonly about: Readonly<Record<string, unknown>>;
    readonly culprits?: ReadonlySet<string>;
    readonly children: ComponentChildren;
    readonly details?: (row: number) => ComponentChildren;
  },
) {
  const { view, params, change, of, culprits, details } = props;
  const { find } = params;
  const alone = onlySide(of);
  const only = alone === null ? params.only : "all";
  const [selected, setSelected] = useState<readonly [Compared, number] | null>(null);
  const columns = useMemo(
    () => differenceColumns(of, view, culprits),
    [of, view.theme, view.byteUnit, culprits],
  );
  const { rows: sorted, ...sorting } = useSort(
    columns,
    of.names.length,
    { key: alone ?? "change", descending: true },
    params.sort ?? undefined,
    (sort) => change({ sort }),
  );
  const rows = useMemo(
    () => wantedRows(of, sorted, { only, find }),
    [of, sorted, only, find],
  );
  const row = selected?.[0] === of ? selected[1] : null;
  return (
    <>
      <div class="panel-head">
        {props.children}
        {alone === null && <Switch view={view} of={COMPARE.only} label="Rows shown" />}
        <SearchBox
          label="Find in the table"
          text={find}
          onText={(text) => change({ find: text })}
          commands={view.commands}
        />
        <span class="quiet" role="status">
          {formatInteger(rows.length)} of {formatInteger(of.names.length)}
        </span>
        <ExportMenu
          subject="the table of differences"
          source={{
            origin: originOf(view.run),
            name: `difference by ${of.key}`,
            table: () => tableOf([...columns, ...of.exported], rows),
            about: () => ({ only, ...props.about }),
          }}
          shell={view}
        />
      </div>
      <RowTable
        label={`Difference by ${of.key}`}
        columns={columns}
        rows={rows}
        {...(details === undefined
          ? {}
          : { selected: row, onSelect: (one: number) => setSelected([of, one]) })}
        {...sorting}
        empty={
          find !== ""
            ? "Nothing matches."
            : only === "all"
              ? "Both sides are empty."
              : `${only.toUpperCase()} has nothing that the other side lacks.`
        }
        heightPx={props.heightPx}
      />
      {row !== null && details?.(row)}
    </>
  );
}
