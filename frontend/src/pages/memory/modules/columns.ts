import type {
  ModulesResponse,
  ModuleTree,
  TableColumn,
  TableRows,
} from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import {
  categoryColour,
  categoryColours,
  categoryLabel,
} from "../../../model/category";
import { Tree } from "../../../model/tree";
import { formatExact, formatSignedExact } from "../../../model/words/quantity";
import { longestOf, type RowColumn } from "../../../widgets/row_table/columns";
import { declared, declaredTable } from "../../shared/table/columns";
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
    this.texts = fqn.map((name, id) => `${name} ${type[id] ?? ""}`);
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

interface Bytes {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly bytes: Float64Array;
  readonly baseline: Float64Array | null;
}

const SUMS = {
  total_bytes: [
    "Rank total",
    "All that the rank held at the module’s moment, whoever holds it: what torch’s trackers print",
    "totalBytes",
    "baselineTotalBytes",
  ],
  held_bytes: [
    "Memory",
    "What the module holds, with all modules below it",
    "heldBytes",
    "baselineHeldBytes",
  ],
  own_bytes: [
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
    data.measure === "total"
      ? (["total_bytes"] as const)
      : (["held_bytes", "own_bytes"] as const);
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
      key: `${name}_bytes`,
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

/** All bars are of one scale. In files are what the page compares, and more of modules. */
export function moduleTable({ data, find }: ModuleTableInput): TableRows {
  const all = allBytes(data);
  const signed = data.baseline !== null;
  const shown = all.map((of) => shownValues(of));
  const longest = Math.max(0, ...shown.map((values) => longestOf(values)));
  const measure = data.measure === "total" ? "total_bytes" : "held_bytes";
  return declaredTable({
    title: "Modules",
    empty: find === "" ? "This step has no modules." : "No module matches.",
    usual: signed ? changeKey(measure) : measure,
    numRows: data.tree.fqn.length,
    columns: [
      ...all.map(({ key, title, hint }, i) =>
        declared({
          key: signed ? changeKey(key) : key,
          title: signed ? `Δ\u00a0${title}` : title,
          help: hint,
          unit: signed ? "change_bytes" : "bytes",
          numbers: shown[i] ?? new Float64Array(),
          bar: signed ? "change" : key,
          longest,
        }),
      ),
      ...callColumns(data),
      ...fileColumns(data, all, signed),
    ],
  });
}

interface ModuleTableInput {
  readonly data: ModulesResponse;
  readonly find: string;
}

/** Of the column that is less what it is compared with. */
function changeKey(key: string): string {
  return key.replace(/_bytes$/, "_change_bytes");
}

function allBytes(data: ModulesResponse): readonly Bytes[] {
  return [...sumsOf(data), ...categoriesOf(data)];
}

/** Of bars, by column: of a category its own, of other bytes that of what is unknown. */
export function moduleColours(
  data: Pick<ModulesResponse, "categories">,
  theme: Theme,
): Readonly<Record<string, string>> {
  const unknown = categoryColour(theme, "unknown");
  const sums = Object.keys(SUMS).map((key) => [key, unknown] as const);
  return { ...Object.fromEntries(sums), ...categorySwatches(data, theme) };
}

/** Of headings, by column. */
export function categorySwatches(
  { categories }: Pick<ModulesResponse, "categories">,
  theme: Theme,
): Readonly<Record<string, string>> {
  // Of all categories in fixed order, as in the timeline below.
  const colours = categoryColours(theme, categories);
  const own = categories.map(
    ({ name }, i) => [`${name}_bytes`, colours[i] ?? "transparent"] as const,
  );
  const changes = own.map(([key, colour]) => [changeKey(key), colour] as const);
  return Object.fromEntries([...own, ...changes]);
}

/** Only where a module was called more than once. */
function callColumns(data: ModulesResponse): readonly TableColumn[] {
  const { maxCalls, numCalls, callShown } = data;
  if (maxCalls <= 1) return [];
  const texts = Array.from(numCalls, (num, id) => {
    const call = callShown[id] ?? -1;
    if (call < 0 || num === 0) return "";
    return `${formatInteger(call + 1)} of ${formatInteger(num)}`;
  });
  return [
    declared({
      key: "which_call",
      title: "Call",
      help: "Which call of the module is shown, and how many there were",
      unit: "text",
      texts,
      absent: "The module was not called",
      sorts: false,
    }),
  ];
}

function fileColumns(
  data: ModulesResponse,
  all: readonly Bytes[],
  signed: boolean,
): readonly TableColumn[] {
  const numbers: Readonly<Record<string, ArrayLike<number> | null>> = {
    fsdp: data.tree.isFsdp,
    param_bytes: data.tree.paramBytes,
    buffer_bytes: data.tree.bufferBytes,
    num_calls: data.numCalls,
    call: data.callShown,
    time_us: data.timeUs,
    rank_total_bytes: data.measure === "total" ? null : data.totalBytes,
    ...(signed && Object.fromEntries(all.map(({ key, bytes }) => [key, bytes]))),
    baseline_rank_total_bytes: data.baselineTotalBytes,
    baseline_held_bytes: data.baselineHeldBytes,
    baseline_own_bytes: data.baselineOwnBytes,
    ...Object.fromEntries(
      data.categories.map((category) => [
        `baseline_${category.name}_bytes`,
        category.baselineBytes,
      ]),
    ),
  };
  const inFiles = { title: "", help: "" };
  return [
    declared({ ...inFiles, key: "type", unit: "text", texts: data.tree.type }),
    ...Object.entries(numbers).flatMap(([key, values]) =>
      values === null
        ? []
        : declared({
            ...inFiles,
            key,
            unit: "count",
            numbers: Float64Array.from(values),
          }),
    ),
  ];
}

/** Why a number of a module is what it is, or is not there; "": of other columns. */
export function moduleTitles(
  data: ModulesResponse,
  modules: Modules,
): (key: string, id: number) => string {
  const signed = data.baseline !== null;
  const byKey = new Map(
    allBytes(data).map((of) => [signed ? changeKey(of.key) : of.key, of]),
  );
  return (key, id) => {
    const of = byKey.get(key);
    return of === undefined ? "" : whyOf(data, modules, of, id);
  };
}

function whyOf(data: ModulesResponse, modules: Modules, of: Bytes, id: number): string {
  const value = of.bytes[id] ?? NaN;
  if (Number.isNaN(value) && modules.isFold(id)) {
    return "Each of these layers has a moment of its own: their bytes have no sum.";
  }
  if (data.numCalls[id] === 0 && !modules.isFold(id)) {
    return `This module was never at “${stateWords(data, data.state)}” in this step: a list of modules never runs. At the peak every module has a number.`;
  }
  if (of.baseline === null) return formatExact(value, "bytes");
  const other = of.baseline[id] ?? NaN;
  const baselineName = data.baseline?.words ?? "";
  if (!Number.isFinite(other)) {
    return `${formatExact(value, "bytes")}; ${baselineName} has no such module or state`;
  }
  const difference = formatSignedExact(value - other, "bytes");
  return `${difference}: ${formatExact(value, "bytes")}, against ${formatExact(other, "bytes")} (${baselineName})`;
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
