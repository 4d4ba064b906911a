/** The answer of `/modules` as a tree: names, values by column, rows in sight. Pure. */

import type {
  CategoryGroup,
  ModulesResponse,
  ModuleTree,
} from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { categoryLabel } from "../../../model/category";
import type { Table, TableColumn } from "../../../model/table";
import { flatRows, orderBy, Tree, treeRows, type TreeRow } from "../../../model/tree";
import { FIRST_DEPTH, type ModulesParams } from "./params";

/** The modules of an answer, with what is worked out once for all their columns. */
export class Modules {
  readonly tree: Tree;
  readonly #data: ModuleTree;
  #fqns: readonly string[] | null = null;
  #ids: ReadonlyMap<string, number> | null = null;
  readonly #opened: ReadonlySet<number>;

  /** `largest`, a fqn, is in sight at first. */
  constructor(data: ModuleTree, largest: string | null = null) {
    this.#data = data;
    this.tree = new Tree(data.parent);
    const id = largest === null ? null : this.idOf(largest);
    this.#opened = new Set(id === null ? [] : this.tree.ancestors(id));
  }

  /** The module's own part of its fqn. */
  name(id: number): string {
    return this.#data.names[this.#data.name[id] ?? -1] ?? "";
  }

  type(id: number): string {
    return this.#data.types[this.#data.type[id] ?? -1] ?? "";
  }

  /** How many equal layers it lists: one row stands for all until it is opened. */
  numEqual(id: number): number {
    return this.#data.numEqual[id] ?? 0;
  }

  /** `40 × layers.*` where a row stands for equal layers, else the module's own name. */
  label(id: number): string {
    const num = this.numEqual(id);
    return num === 0 ? this.name(id) : `${formatInteger(num)} × ${this.name(id)}.*`;
  }

  isFsdp(id: number): boolean {
    return this.#data.isFsdp[id] === 1;
  }

  get fqns(): readonly string[] {
    if (this.#fqns !== null) return this.#fqns;
    const fqns: string[] = [];
    this.tree.parent.forEach((up, id) => {
      const above = up >= 0 && up < id ? fqns[up] : undefined;
      fqns.push(above === undefined ? this.name(id) : `${above}.${this.name(id)}`);
    });
    this.#fqns = fqns;
    return fqns;
  }

  fqn(id: number): string {
    return this.fqns[id] ?? "";
  }

  /** null where there is no such module. */
  idOf(fqn: string): number | null {
    this.#ids ??= new Map(this.fqns.map((one, id) => [one, id]));
    return this.#ids.get(fqn) ?? null;
  }

  /** Whether a row stands open: as its depth says, or the other way round by hand. */
  isOpen(id: number, depth: number | null, turned: boolean): boolean {
    const above = depth === null && this.#opened.has(id);
    return (above || this.tree.depth(id) < (depth ?? FIRST_DEPTH)) !== turned;
  }

  /** Modules whose fqn or type holds every word; null where nothing is searched. */
  search(text: string): Uint8Array | null {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return null;
    const { fqns } = this;
    return Uint8Array.from(fqns, (fqn, id) => {
      const line = `${fqn} ${this.type(id)}`.toLowerCase();
      return Number(words.every((word) => line.includes(word)));
    });
  }
}

/** A column of bytes: the values shown and, where compared, those they are compared with. */
export interface BytesColumn {
  readonly key: string;
  readonly title: string;
  /** null for sums over all categories. */
  readonly group: CategoryGroup | null;
  readonly bytes: Float64Array;
  readonly baseline: Float64Array | null;
}

function holdsAnything(values: Float64Array | null): boolean {
  return values?.some((value) => Number.isFinite(value) && value !== 0) === true;
}

/**
 * What modules hold, or what the rank held when each of them ran: never both beside each
 * other, as a rank's total in a module's row reads as if it were the module's.
 */
function sumColumns(data: ModulesResponse): readonly BytesColumn[] {
  if (data.measure === "total") {
    return [
      {
        key: "total",
        title: "Rank total",
        group: null,
        bytes: data.totalBytes,
        baseline: data.baselineTotalBytes,
      },
    ];
  }
  return [
    {
      key: "held",
      title: "Memory",
      group: null,
      bytes: data.heldBytes,
      baseline: data.baselineHeldBytes,
    },
    {
      key: "own",
      title: "Own",
      group: null,
      bytes: data.ownBytes,
      baseline: data.baselineOwnBytes,
    },
  ];
}

function largestOf({ bytes }: BytesColumn): number {
  return bytes.reduce((most, value) => (value > most ? value : most), 0);
}

/** Sums first, then the categories that are not zero everywhere, the largest first. */
export function bytesColumns(data: ModulesResponse): readonly BytesColumn[] {
  const sums = sumColumns(data);
  const categories = data.categories
    .filter(({ bytes, baselineBytes }) => [bytes, baselineBytes].some(holdsAnything))
    .map(({ name, group, bytes, baselineBytes }) => ({
      key: name,
      title: categoryLabel(name),
      group,
      bytes,
      baseline: baselineBytes,
    }))
    .sort((a, b) => largestOf(b) - largestOf(a));
  return [...sums, ...categories];
}

/** What a cell stands for: the value, or how much it differs. NaN: not known. */
export function shownValue({ bytes, baseline }: BytesColumn, id: number): number {
  const value = bytes[id] ?? NaN;
  return baseline === null ? value : value - (baseline[id] ?? NaN);
}

function orderOf(
  modules: Modules,
  columns: readonly BytesColumn[],
  params: ModulesParams,
): ((a: number, b: number) => number) | null {
  if (params.sort === "module") {
    const { fqns } = modules;
    const sign = params.descending ? -1 : 1;
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    return (a, b) => sign * compare(fqns[a] ?? "", fqns[b] ?? "");
  }
  const column = columns.find((one) => one.key === params.sort);
  if (column === undefined) return null;
  const values = Float64Array.from(column.bytes.keys(), (id) => shownValue(column, id));
  return orderBy(values, params.descending);
}

/** `toggled` are modules opened or closed by hand, by fqn. */
export function rowsInSight(
  modules: Modules,
  columns: readonly BytesColumn[],
  params: ModulesParams,
  toggled: ReadonlySet<string>,
): readonly TreeRow[] {
  const order = orderOf(modules, columns, params);
  const matches = modules.search(params.find);
  const { tree } = modules;
  if (params.flat) return flatRows(tree, { order, matches }, params.depth);
  const turned = new Set<number>();
  for (const fqn of toggled) {
    const id = modules.idOf(fqn);
    if (id !== null) turned.add(id);
  }
  const isExpanded = (id: number): boolean =>
    modules.isOpen(id, params.depth, turned.has(id));
  return treeRows(tree, { order, isExpanded, matches });
}

/** Every module that was searched for, with every digit; in the model's order. */
export function modulesTable(
  data: ModulesResponse,
  modules: Modules,
  find: string,
): Table {
  const matches = modules.search(find);
  const ids = flatRows(modules.tree, { order: null, matches }, null).map(
    ({ id }) => id,
  );
  const pick = (values: ArrayLike<number>): Float64Array =>
    Float64Array.from(ids, (id) => values[id] ?? NaN);
  const columns: TableColumn[] = [
    { name: "module", values: ids.map((id) => modules.fqn(id)) },
    { name: "type", values: ids.map((id) => modules.type(id)) },
    { name: "fsdp", values: pick(data.tree.isFsdp) },
    { name: "param_bytes", values: pick(data.tree.paramBytes) },
    { name: "buffer_bytes", values: pick(data.tree.bufferBytes) },
    { name: "num_calls", values: pick(data.numCalls) },
    { name: "call", values: pick(data.callShown) },
    { name: "time_us", values: pick(data.timeUs) },
  ];
  const bytes = (name: string, values: Float64Array | null): void => {
    if (values !== null) columns.push({ name: `${name}_bytes`, values: pick(values) });
  };
  bytes("rank_total", data.totalBytes);
  bytes("baseline_rank_total", data.baselineTotalBytes);
  bytes("held", data.heldBytes);
  bytes("baseline_held", data.baselineHeldBytes);
  bytes("own", data.ownBytes);
  bytes("baseline_own", data.baselineOwnBytes);
  for (const { name, bytes: values, baselineBytes } of data.categories) {
    bytes(name, values);
    bytes(`baseline_${name}`, baselineBytes);
  }
  return { numRows: ids.length, columns };
}
