/** Hook values and saved activations of one call as rows and columns. Pure. */

import type { HookValues, ModuleNames, SavedActivations } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { categoryColour } from "../../../model/category";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned } from "../../../model/words/signed";
import type { Table } from "../../../model/table";
import { orderBy, type TreeRow } from "../../../model/tree";
import type { TreeColumn, TreeSort } from "../../../widgets/tree_table/types";

export const OUTSIDE = "outside any module";

/** The root's path is empty: it is called by its class. */
function moduleName({ paths, types }: ModuleNames, index: number): string {
  if (index < 0) return OUTSIDE;
  const path = paths[index] ?? "";
  return path === "" ? (types[index] ?? "root") : path;
}

/** A list of rows that can be searched and sorted, and exported whole. */
export interface ValueList {
  readonly names: readonly string[];
  /** By column key. */
  readonly numbers: ReadonlyMap<string, Float64Array>;
  readonly columns: readonly TreeColumn[];
  readonly table: Table;
}

export function listRows(
  list: ValueList,
  find: string,
  sort: TreeSort | null,
): readonly TreeRow[] {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const ids = Array.from(list.names.keys()).filter((id) => {
    const name = (list.names[id] ?? "").toLowerCase();
    return words.every((word) => name.includes(word));
  });
  const values = sort === null ? undefined : list.numbers.get(sort.key);
  if (values !== undefined) ids.sort(orderBy(values, sort?.descending ?? true));
  return ids.map((id) => ({ id, depth: 0, numChildren: 0, expanded: false }));
}

const LETTER_PX = 7;

function moduleColumn(names: readonly string[], notes: readonly string[]): TreeColumn {
  return {
    key: "module",
    title: "Module",
    numeric: false,
    sortable: false,
    minWidthPx: 280,
    isTree: true,
    cell: (id) => ({
      text: names[id] ?? "",
      note: notes[id] === names[id] ? "" : (notes[id] ?? ""),
      ...(names[id] === OUTSIDE ? { tone: "quiet" as const } : {}),
    }),
  };
}

export function hookList(hooks: HookValues, byteUnit: ByteUnit): ValueList {
  const names = Array.from(hooks.module, (index) => moduleName(hooks.modules, index));
  const types = Array.from(hooks.module, (index) => hooks.modules.types[index] ?? "");
  const columns = hooks.attributes.map(({ name, unit, values }): TreeColumn => {
    const signed = name.endsWith("diff");
    return {
      key: name,
      title: name,
      numeric: true,
      minWidthPx: Math.max(92, name.length * LETTER_PX + 32),
      cell: (id) => {
        const value = values[id] ?? NaN;
        const text = signed
          ? formatSigned(value, unit, byteUnit)
          : formatQuantity(value, unit, byteUnit);
        const title = formatExact(value, unit);
        const quiet = !Number.isFinite(value) || (signed && value === 0);
        return { text, title, ...(quiet ? { tone: "quiet" as const } : {}) };
      },
    };
  });
  return {
    names: names.map((name, id) => `${name} ${types[id] ?? ""}`),
    numbers: new Map(hooks.attributes.map(({ name, values }) => [name, values])),
    columns: [moduleColumn(names, types), ...columns],
    table: {
      numRows: names.length,
      columns: [
        { name: "module", values: names },
        { name: "type", values: types },
        ...hooks.attributes.map(({ name, unit, values }) => ({
          name: `${name} (${unit})`,
          values,
        })),
      ],
    },
  };
}

export function activationList(
  saved: SavedActivations,
  theme: Theme,
  byteUnit: ByteUnit,
): ValueList {
  const names = Array.from(saved.module, (index) => moduleName(saved.modules, index));
  const types = Array.from(saved.module, (index) => saved.modules.types[index] ?? "");
  const dtypes = Array.from(saved.dtype, (index) => saved.dtypes[index] ?? "");
  const colour = categoryColour(theme, "activation");
  const highest = saved.bytes.reduce((a, b) => (b > a ? b : a), 0);
  const size = (
    key: string,
    title: string,
    hint: string,
    values: Float64Array,
    hasBar: boolean,
  ): TreeColumn => ({
    key,
    title,
    hint,
    numeric: true,
    minWidthPx: 120,
    cell: (id) => {
      const value = values[id] ?? NaN;
      return {
        text: formatQuantity(value, "bytes", byteUnit),
        title: formatExact(value, "bytes"),
        ...(hasBar && value > 0 && highest > 0
          ? { bar: { from: 0, to: value / highest, colour } }
          : {}),
      };
    },
  });
  return {
    names: names.map((name, id) => `${name} ${types[id] ?? ""} ${dtypes[id] ?? ""}`),
    numbers: new Map([
      ["num_tensors", saved.numTensors],
      ["saved_bytes", saved.bytes],
      ["npp_compat", saved.nppCompatBytes],
    ]),
    columns: [
      moduleColumn(names, types),
      {
        key: "dtype",
        title: "Dtype",
        numeric: false,
        sortable: false,
        minWidthPx: 96,
        cell: (id) => ({ text: dtypes[id] ?? "" }),
      },
      {
        key: "num_tensors",
        title: "Tensors",
        numeric: true,
        minWidthPx: 88,
        cell: (id) => ({ text: formatInteger(saved.numTensors[id] ?? 0) }),
      },
      size(
        "saved_bytes",
        "Saved bytes",
        "Of distinct storages, without parameters and their views; a storage counts for the module that saved it first",
        saved.bytes,
        true,
      ),
      size(
        "npp_compat",
        "npp_compat",
        "The sum that MemProfiler reports: every tensor that is not a parameter counts, also twice",
        saved.nppCompatBytes,
        false,
      ),
    ],
    table: {
      numRows: names.length,
      columns: [
        { name: "module", values: names },
        { name: "type", values: types },
        { name: "dtype", values: dtypes },
        { name: "num_tensors", values: saved.numTensors },
        { name: "saved_bytes", values: saved.bytes },
        { name: "npp_compat_bytes", values: saved.nppCompatBytes },
      ],
    },
  };
}
