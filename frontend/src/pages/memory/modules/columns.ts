import type { ModulesResponse, ModuleTree } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import {
  categoryColour,
  categoryColours,
  categoryLabel,
  divergingColours,
} from "../../../model/category";
import { searchOf } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import { Tree } from "../../../model/tree";
import {
  formatExact,
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../../model/words/quantity";
import {
  barOf,
  changeBar,
  longestOf,
  numberColumn,
  tableOf,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { headingWidth, inTwoLines } from "../../../widgets/row_table/headings";
import { FIRST_DEPTH, stateWords } from "./params";

export class Modules {
  readonly tree: Tree;
  readonly fqns: readonly string[];
  /** Searched text, by row. */
  readonly texts: readonly string[];

  constructor(private readonly data: ModuleTree) {
    const { parent, fold, fqn, type } = data;
    this.tree = new Tree(
      parent.map((up, id) => (this.isFold(id) ? up : Math.max(up, fold[id] ?? -1))),
    );
    this.fqns = fqn;
    this.texts = fqn.map((one, id) => `${one} ${type[id] ?? ""}`);
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
    return `${this.data.isFsdp[id] === 1 ? "FSDP · " : ""}${this.data.type[layer] ?? ""}`;
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

interface ColumnsInput {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly flat: boolean;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

interface Bytes {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly bytes: Float64Array;
  readonly baseline: Float64Array | null;
}

const SUMS = {
  total: [
    "Rank total",
    "All that the rank held at the module’s moment, whoever holds it: what torch’s trackers print",
    "totalBytes",
    "baselineTotalBytes",
  ],
  held: [
    "Memory",
    "What the module holds, with all modules below it",
    "heldBytes",
    "baselineHeldBytes",
  ],
  own: [
    "Own",
    "Own bytes, without those of its children: its parameters, gradients and optimizer states, and what its code allocated",
    "ownBytes",
    "baselineOwnBytes",
  ],
} as const;

/**
 * Bytes of modules, or of the rank when each ran; never both, as a rank's total in a
 * module's row reads as the module's.
 */
function sumsOf(data: ModulesResponse): readonly Bytes[] {
  const keys =
    data.measure === "total" ? (["total"] as const) : (["held", "own"] as const);
  return keys.map((key) => {
    const [title, hint, bytes, baseline] = SUMS[key];
    return { key, title, hint, bytes: data[bytes], baseline: data[baseline] };
  });
}

/** Non-zero ones, largest first. */
function categoriesOf(data: ModulesResponse): readonly Bytes[] {
  const hint =
    data.measure === "held"
      ? "Of this category, with all modules below"
      : "The rank’s total of this category at the module’s moment";
  return data.categories
    .map(({ name, bytes, baselineBytes }) => ({
      key: name,
      title: categoryLabel(name),
      hint,
      bytes,
      baseline: baselineBytes,
    }))
    .filter(({ bytes, baseline }) => longestOf(bytes) + longestOf(baseline ?? []) > 0)
    .sort((a, b) => longestOf(b.bytes) - longestOf(a.bytes));
}

/** The value or its difference; NaN: unknown. */
function shownValues({ bytes, baseline }: Bytes): Float64Array {
  if (baseline === null) return bytes;
  return bytes.map((value, id) => value - (baseline[id] ?? NaN));
}

const LEAST_PX = 76;

export function moduleColumns(input: ColumnsInput): readonly RowColumn[] {
  const { data, theme, byteUnit } = input;
  const all = [...sumsOf(data), ...categoriesOf(data)].map((of) => ({
    of,
    values: shownValues(of),
  }));
  const signed = data.baseline !== null;
  const longest = Math.max(0, ...all.map(({ values }) => longestOf(values)));
  // Of all categories in fixed order, as in the timeline below.
  const colours = categoryColours(theme, data.categories);
  const swatches = new Map(data.categories.map(({ name }, i) => [name, colours[i]]));
  const diverging = divergingColours(theme);
  const columns = all.map(({ of, values }): RowColumn => {
    const { key, hint } = of;
    const swatch = swatches.get(key);
    const title = inTwoLines(signed ? `Δ\u00a0${of.title}` : of.title);
    const colour = swatch ?? categoryColour(theme, "unknown");
    const px = Math.max(LEAST_PX, headingWidth(title, swatch !== undefined));
    return {
      key,
      title,
      hint,
      values,
      numeric: true,
      width: `minmax(${px}px, 1fr)`,
      ...(swatch === undefined ? {} : { swatch }),
      exported: { name: `${key}_bytes`, values: of.bytes },
      cell: (id) => {
        const value = values[id] ?? NaN;
        const text = (signed ? formatSigned : formatQuantity)(value, "bytes", byteUnit);
        const cell: RowCell = { text, title: whyOf(input, of, id) };
        if (value === 0 || Number.isNaN(value)) return { ...cell, tone: "quiet" };
        const bar = signed
          ? changeBar(value, longest, diverging)
          : barOf(value, longest, colour);
        return { ...cell, bar };
      },
    };
  });
  return [moduleColumn(input), ...columns, ...callColumns(data)];
}

function whyOf({ data, modules }: ColumnsInput, of: Bytes, id: number): string {
  const value = of.bytes[id] ?? NaN;
  if (Number.isNaN(value) && modules.isFold(id)) {
    return "Each of these layers has a moment of its own: their bytes have no sum.";
  }
  if (data.numCalls[id] === 0 && !modules.isFold(id)) {
    return `This module was never at “${stateWords(data, data.state)}” in this step: a list of modules never runs. At the peak every module has a number.`;
  }
  if (of.baseline === null) return formatExact(value, "bytes");
  const other = of.baseline[id] ?? NaN;
  const words = data.baseline?.words ?? "";
  if (!Number.isFinite(other)) {
    return `${formatExact(value, "bytes")}; ${words} has no such module or state`;
  }
  const difference = formatSignedExact(value - other, "bytes");
  return `${difference}: ${formatExact(value, "bytes")}, against ${formatExact(other, "bytes")} (${words})`;
}

/** Sorted by it, modules are in the model's order. */
function moduleColumn({ modules, flat }: ColumnsInput): RowColumn {
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

/** Only where a module was called more than once. */
function callColumns({ maxCalls, numCalls, callShown }: ModulesResponse): RowColumn[] {
  if (maxCalls <= 1) return [];
  const hint = "Which call of the module is shown, and how many there were";
  const cell = (num: number, id: number): RowCell => {
    const shown = callShown[id] ?? -1;
    if (shown < 0 || num === 0) return { text: "–", tone: "quiet" };
    return { text: `${formatInteger(shown + 1)} of ${formatInteger(num)}` };
  };
  const width = `minmax(${LEAST_PX}px, 1fr)`;
  const column = numberColumn("call", "Call", width, numCalls, cell, hint);
  return [{ ...column, sortable: false, exported: null }];
}

export function modulesTable(
  data: ModulesResponse,
  modules: Modules,
  columns: readonly RowColumn[],
  find: string,
): Table {
  const search = searchOf(find);
  const rows = [...modules.texts.keys()].filter(
    (id) => !modules.isFold(id) && search?.(modules.texts[id] ?? "") !== false,
  );
  const more: Readonly<Record<string, ArrayLike<number> | readonly string[] | null>> = {
    type: data.tree.type,
    fsdp: data.tree.isFsdp,
    param_bytes: data.tree.paramBytes,
    buffer_bytes: data.tree.bufferBytes,
    num_calls: data.numCalls,
    call: data.callShown,
    time_us: data.timeUs,
    rank_total_bytes: data.measure === "total" ? null : data.totalBytes,
    baseline_rank_total_bytes: data.baselineTotalBytes,
    baseline_held_bytes: data.baselineHeldBytes,
    baseline_own_bytes: data.baselineOwnBytes,
    ...Object.fromEntries(
      data.categories.map((one) => [`baseline_${one.name}_bytes`, one.baselineBytes]),
    ),
  };
  const extra = Object.entries(more).flatMap(([key, values]) =>
    values === null ? [] : { key, values },
  );
  return tableOf([...columns, ...extra], rows);
}
