import type { ModulesResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { categoryColour, categoryColours } from "../../../model/category";
import { Tree } from "../../../model/tree";
import { formatExact, formatSignedExact } from "../../../model/words/quantity";
import type { RowColumn } from "../../../widgets/row_table/columns";
import { columnOf, numbersOf, type Colours } from "../../shared/table/columns";
import { FIRST_DEPTH, stateWords } from "./params";

export class Modules {
  readonly tree: Tree;
  readonly fqns: readonly string[];
  /** Searched text, by row. */
  readonly texts: readonly string[];
  private readonly data: ModulesResponse["tree"];
  private readonly types: readonly string[];
  private readonly isFsdp: Float64Array;

  constructor({ tree, table }: Pick<ModulesResponse, "tree" | "table">) {
    const { parent, fold, fqn } = tree;
    this.data = tree;
    this.types = columnOf(table, "type")?.texts ?? [];
    this.isFsdp = numbersOf(table, "fsdp");
    this.tree = new Tree(
      parent.map((up, id) => (this.isFold(id) ? up : Math.max(up, fold[id] ?? -1))),
    );
    this.fqns = fqn;
    this.texts = fqn.map((name, id) => `${name} ${this.types[id] ?? ""}`);
  }

  /** A row of equal siblings, not a module. */
  isFold(id: number): boolean {
    return this.data.fold[id] === id;
  }

  label(id: number): string {
    return this.data.label[id] ?? "";
  }

  /** Number of rows that are modules. */
  get num(): number {
    return this.fqns.length - this.data.fold.filter((of, id) => of === id).length;
  }

  note(id: number, flat: boolean): string {
    const isOne = flat || this.data.numEqual[id] === 0;
    const [layer = id] = isOne ? [] : this.tree.children(id);
    return `${this.isFsdp[id] === 1 ? "FSDP · " : ""}${this.types[layer] ?? ""}`;
  }

  /** Initially open: the way to a module, and rows of layers near the root. */
  opened(fqn: string | null): readonly number[] {
    const id = this.idOf(fqn);
    const way = id === null ? [] : this.tree.ancestors(id);
    const folded = [...this.data.parent.filter((_, row) => this.isFold(row))];
    return [...way, ...folded.filter((row) => this.tree.depth(row) <= FIRST_DEPTH)];
  }

  idOf(fqn: string | null): number | null {
    const id = fqn === null ? -1 : this.fqns.indexOf(fqn);
    return id < 0 ? null : id;
  }
}

const CHANGE = /_change_bytes$/;

/** Of bars: of a category its own, of other bytes that of what is unknown. */
export function moduleColours(
  { categories }: Pick<ModulesResponse, "categories">,
  theme: Theme,
): Colours {
  return {
    unknown: categoryColour(theme, "unknown"),
    ...coloursByName(categories, theme),
  };
}

/** Of headings, by column. */
export function categorySwatches(
  { categories }: Pick<ModulesResponse, "categories">,
  theme: Theme,
): Colours {
  const colours = Object.entries(coloursByName(categories, theme));
  return Object.fromEntries(
    colours.flatMap(([name, colour]) => [
      [`${name}_bytes`, colour],
      [`${name}_change_bytes`, colour],
    ]),
  );
}

/** Of all categories in fixed order, as in the timeline below. */
function coloursByName(
  categories: ModulesResponse["categories"],
  theme: Theme,
): Colours {
  const colours = categoryColours(theme, categories);
  return Object.fromEntries(
    categories.map(({ name }, i) => [name, colours[i] ?? "transparent"]),
  );
}

/** Why a number of a module is what it is, or is not there; "": of other columns. */
export function moduleTitles(
  data: ModulesResponse,
  modules: Modules,
): (key: string, id: number) => string {
  const { table, baseline, state } = data;
  const numbers = new Map(table.columns.map((column) => [column.key, column.numbers]));
  return (key, id) => {
    if (!key.endsWith("_bytes")) return "";
    const own = key.replace(CHANGE, "_bytes");
    const value = numbers.get(own)?.[id] ?? NaN;
    if (Number.isNaN(value) && modules.isFold(id)) {
      return "Each of these layers has a moment of its own: their bytes have no sum.";
    }
    if (numbers.get("num_calls")?.[id] === 0 && !modules.isFold(id)) {
      return `This module was never at “${stateWords(data, state)}” in this step: a list of modules never runs. At the peak every module has a number.`;
    }
    if (baseline === null) return formatExact(value, "bytes");
    const other = numbers.get(`baseline_${own}`)?.[id] ?? NaN;
    if (!Number.isFinite(other)) {
      return `${formatExact(value, "bytes")}; ${baseline.words} has no such module or state`;
    }
    const difference = formatSignedExact(value - other, "bytes");
    return `${difference}: ${formatExact(value, "bytes")}, against ${formatExact(other, "bytes")} (${baseline.words})`;
  };
}

/** Sorted by it, modules are in the model's order. */
export function moduleColumn(modules: Modules, flat: boolean): RowColumn {
  return {
    key: "module",
    title: "Module",
    hint: "A click on a row opens its details",
    numeric: false,
    width: `minmax(${flat ? 320 : 208}px, 3fr)`,
    isTree: true,
    values: Int32Array.from(modules.fqns, (_, id) => id),
    exported: { name: "module", values: modules.fqns },
    cell: (id) => {
      const text = flat ? (modules.fqns[id] ?? "") : modules.label(id);
      const note = modules.note(id, flat);
      return {
        text,
        title: modules.fqns[id] ?? "",
        ...(note === text ? {} : { note }),
      };
    },
  };
}
