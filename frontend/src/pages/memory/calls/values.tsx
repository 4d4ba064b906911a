/** Hook values and saved activations of one call: tables of numbers by module. */

import { useMemo, useState } from "preact/hooks";
import type { HookValues, SavedActivations } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { categoryColour } from "../../../model/category";
import { searchOf, type Sort } from "../../../model/shown_rows";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned } from "../../../model/words/signed";
import type { Origin } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import {
  barOf,
  countCell,
  longestOf,
  numberColumn,
  tableOf,
  textColumn,
} from "../../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Status } from "../../../widgets/status/status";
import { SearchBox } from "../../shared/controls/search_box";

const TABLE_PX = 320;
const LETTER_PX = 7;
const IN_ORDER = { key: "module", descending: false };
export const MOST_SAVED = { key: "saved_bytes", descending: true };

type OfModules = Pick<HookValues, "name" | "type">;

/** Ordered by it, modules stand as in the model. */
function moduleColumn({ name, type }: OfModules): RowColumn {
  return {
    ...{ key: "module", title: "Module", numeric: false, width: "minmax(280px, 3fr)" },
    values: Int32Array.from(name.keys()),
    exported: { name: "module", values: name },
    cell: (row) => {
      const [text, note] = [name[row] ?? "", type[row] ?? ""];
      if (note === "") return { text, tone: "quiet" };
      return { text, ...(note !== text && { note }) };
    },
  };
}

export function hookColumns(
  hooks: HookValues,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const values = hooks.attributes.map(({ name, unit, values: of }) => {
    const signed = name.endsWith("diff");
    const px = Math.max(92, name.length * LETTER_PX + 32);
    const column = numberColumn(name, name, `minmax(${px}px, 1fr)`, of, (value) => ({
      text: (signed ? formatSigned : formatQuantity)(value, unit, byteUnit),
      title: formatExact(value, unit),
      ...((Number.isNaN(value) || (signed && value === 0)) && { tone: "quiet" }),
    }));
    return { ...column, exported: { name: `${name} (${unit})`, values: of } };
  });
  return [moduleColumn(hooks), ...values];
}

export function activationColumns(
  saved: SavedActivations,
  theme: Theme,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const colour = categoryColour(theme, "activation");
  const longest = longestOf(saved.bytes);
  const size = (value: number) => ({
    text: formatQuantity(value, "bytes", byteUnit),
    title: formatExact(value, "bytes"),
  });
  const wide = "minmax(120px, 1fr)";
  return [
    moduleColumn(saved),
    textColumn("dtype", "Dtype", "minmax(96px, 1fr)", saved.dtype),
    numberColumn(
      "num_tensors",
      "Tensors",
      "minmax(88px, 1fr)",
      saved.numTensors,
      countCell,
    ),
    numberColumn(
      "saved_bytes",
      "Saved bytes",
      wide,
      saved.bytes,
      (value) => ({ ...size(value), bar: barOf(value, longest, colour) }),
      "Of distinct storages, without parameters and their views; a storage counts for the module that saved it first",
    ),
    numberColumn(
      "npp_compat_bytes",
      "npp_compat",
      wide,
      saved.nppCompatBytes,
      size,
      "The sum that MemProfiler reports: every tensor that is not a parameter counts, also twice",
    ),
  ];
}

export function ValueTable(props: {
  readonly title: string;
  /** Said beside the title, e.g. totals. */
  readonly facts: string;
  readonly columns: readonly RowColumn[];
  readonly of: OfModules & Partial<Pick<SavedActivations, "dtype">>;
  /** The call ended in an error: later modules are not among the rows. */
  readonly incomplete: boolean;
  /** Said where there are no rows at all. */
  readonly empty: string;
  /** Names the exported file. */
  readonly name: string;
  /** The order of the model where absent. */
  readonly usual?: Sort;
  readonly origin: Origin;
  readonly about: Readonly<Record<string, unknown>>;
}) {
  const { title, columns, of } = props;
  const [find, setFind] = useState("");
  const [word, setWord] = useState<string | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const all = useSort(columns, of.name.length, props.usual ?? IN_ORDER, word, setWord);
  const rows = useMemo(() => {
    const search = searchOf(find);
    if (search === null) return all.rows;
    return all.rows.filter((row) =>
      search([of.name[row], of.type[row], of.dtype?.[row]].join(" ")),
    );
  }, [all.rows, of, find]);
  return (
    <section aria-label={title}>
      <div class="panel-head functions-head">
        <h2>{title}</h2>
        <span class="quiet">{props.facts}</span>
        <SearchBox
          label={`Find in ${title.toLowerCase()}`}
          placeholder={`${formatInteger(rows.length)} rows`}
          text={find}
          onText={setFind}
        />
        <ExportMenu
          subject={title.toLowerCase()}
          source={{
            origin: props.origin,
            name: props.name,
            table: () => {
              const type = { key: "type", values: of.type };
              return tableOf([...columns, type], [...of.name.keys()]);
            },
            about: () => props.about,
          }}
        />
      </div>
      {props.incomplete && (
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
        empty={find === "" ? props.empty : "No module matches."}
        heightPx={TABLE_PX}
      />
    </section>
  );
}
