/** What hooks and autograd left of one call: a table of numbers by module. */

import { useMemo, useState } from "preact/hooks";
import type { FunctionsResponse, ModuleValues } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { categoryColour } from "../../../model/category";
import { searchOf } from "../../../model/shown_rows";
import { originOf } from "../../../model/words/origin";
import {
  formatExact,
  formatQuantity,
  formatSigned,
} from "../../../model/words/quantity";
import { ExportMenu } from "../../../widgets/export/export_menu";
import {
  barOf,
  longestOf,
  numberColumn,
  tableOf,
  textColumn,
} from "../../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Status } from "../../../widgets/status/status";
import { SearchBox } from "../../shared/controls/search_box";
import type { ViewProps } from "../../shared/view_props";

const TABLE_PX = 320;
const LETTER_PX = 7;

export function valueColumns(
  { name, type, dtype, columns, sort }: ModuleValues,
  theme: Theme,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const module: RowColumn = {
    ...{ key: "module", title: "Module", numeric: false, width: "minmax(280px, 3fr)" },
    // Ordered by it, modules stand as in the model.
    values: Int32Array.from(name.keys()),
    exported: { name: "module", values: name },
    cell: (row) => {
      const [text, note] = [name[row] ?? "", type[row] ?? ""];
      if (note === "") return { text, tone: "quiet" };
      return { text, ...(note !== text && { note }) };
    },
  };
  const numbers = columns.map(({ key, title, hint, unit, signed, values }) => {
    const longest = longestOf(values);
    const colour = categoryColour(theme, "activation");
    const px = Math.max(92, title.length * LETTER_PX + 32);
    const column = numberColumn(
      key,
      title,
      `minmax(${px}px, 1fr)`,
      values,
      (value) => ({
        text: (signed ? formatSigned : formatQuantity)(value, unit, byteUnit),
        title: formatExact(value, unit),
        ...(key === sort && { bar: barOf(value, longest, colour) }),
        ...((Number.isNaN(value) || (signed && value === 0)) && { tone: "quiet" }),
      }),
      hint || title,
    );
    return { ...column, exported: { name: `${key} (${unit})`, values } };
  });
  const dtypes =
    dtype.length === 0 ? [] : [textColumn("dtype", "Dtype", "120px", dtype)];
  return [module, ...dtypes, ...numbers];
}

export function ValueTable(props: {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
  readonly values: ModuleValues;
}) {
  const { view, data, values } = props;
  const { title, name, type, dtype } = values;
  const { theme, byteUnit } = view;
  const [find, setFind] = useState("");
  const [word, setWord] = useState<string | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const columns = useMemo(
    () => valueColumns(values, theme, byteUnit),
    [values, theme, byteUnit],
  );
  const usual = { key: values.sort || "module", descending: values.sort !== "" };
  const all = useSort(columns, name.length, usual, word, setWord);
  const rows = useMemo(() => {
    const search = searchOf(find);
    if (search === null) return all.rows;
    return all.rows.filter((row) =>
      search([name[row], type[row], dtype[row]].join(" ")),
    );
  }, [all.rows, values, find]);
  const { function: called, phase, rank, attempt, iteration } = data;
  return (
    <section aria-label={title}>
      <div class="panel-head functions-head">
        <h2>{title}</h2>
        <span class="quiet">
          iteration {formatInteger(iteration ?? 0)}, {values.facts}
        </span>
        <SearchBox
          label={`Find in ${title.toLowerCase()}`}
          placeholder={`${formatInteger(rows.length)} rows`}
          text={find}
          onText={setFind}
        />
        <ExportMenu
          subject={title.toLowerCase()}
          source={{
            origin: originOf(data.run),
            name: `${values.kind} ${called ?? ""} ${iteration ?? 0} rank ${rank ?? 0}`,
            table: () =>
              tableOf([...columns, { key: "type", values: type }], [...name.keys()]),
            about: () => ({
              ...{ function: called, phase, rank, attempt, iteration },
              facts: values.facts,
            }),
          }}
        />
      </div>
      {values.incomplete && (
        <p>
          <Status look={{ word: "Incomplete", icon: "warning", tone: "warn" }} /> The
          call ended in an error: modules that it did not reach are not listed.
        </p>
      )}
      <RowTable
        label={title}
        columns={columns}
        rows={rows}
        selected={selected}
        onSelect={setSelected}
        sort={all.sort}
        onSort={all.onSort}
        empty={find === "" ? values.empty : "No module matches."}
        heightPx={TABLE_PX}
      />
    </section>
  );
}
