/** Time by module: names, columns, rows in sight, what an export holds. Pure. */

import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import type { Sort } from "../../../../model/shown_rows";
import type { Table } from "../../../../model/table";
import { orderBy, treeRows, type Tree, type TreeRow } from "../../../../model/tree";
import { partColour } from "../../../../render/palette";
import { headingWidth } from "../../../../widgets/row_table/headings";
import type { TreeColumn } from "../../../../widgets/tree_table/types";
import { knowsBackward } from "../../../time/profiled/module_backward";

export const USUAL_TIMES: Sort = { key: "host", descending: true };

interface TimeColumn {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  /** Name in exports. */
  readonly name: string;
  readonly of: (data: ModuleTimesResponse) => Float64Array;
  readonly isCount?: true;
  readonly isDevice?: true;
  /** Without the modules inside. */
  readonly isSelf?: true;
  readonly part?: "forward" | "backward";
}

const COLUMNS: readonly TimeColumn[] = [
  {
    key: "calls",
    title: "Calls",
    hint: "Calls of the module’s forward at this place in the model, while the profiler ran",
    name: "calls",
    of: (data) => data.numCalls,
    isCount: true,
  },
  {
    key: "operators",
    title: "Operators",
    hint: "Operators that the module called itself: those called by other operators, and by modules in it, do not count",
    name: "operators",
    of: (data) => data.numOperators,
    isCount: true,
  },
  {
    key: "host",
    title: "Host\ntotal",
    hint: "Sum of the durations of its forward on the host, with the modules in it. Python’s tracer, which shows modules, makes them slower.",
    name: "host_ms",
    of: (data) => data.hostMs,
    part: "forward",
  },
  {
    key: "host_self",
    title: "Host\nself",
    hint: "Host total − the modules and operators in it: its own Python",
    name: "host_self_ms",
    of: (data) => data.hostSelfMs,
    isSelf: true,
    part: "forward",
  },
  {
    key: "device",
    title: "Device\ntotal",
    hint: "Sum of the durations of what its operators launched on the device, with the modules in it; what ran at the same time counts each",
    name: "device_ms",
    of: (data) => data.deviceMs,
    isDevice: true,
    part: "forward",
  },
  {
    key: "device_self",
    title: "Device\nself",
    hint: "Sum of the durations of what the operators that it called itself launched",
    name: "device_self_ms",
    of: (data) => data.deviceSelfMs,
    isDevice: true,
    isSelf: true,
    part: "forward",
  },
  {
    key: "backward_host",
    title: "Backward\nhost",
    hint: "Sum on the host of the operators of backward whose forward operator lies in the module or below it. What names no forward operator counts for no module.",
    name: "backward_host_ms",
    of: (data) => data.backwardHostMs,
    part: "backward",
  },
  {
    key: "backward_host_self",
    title: "Backward\nhost self",
    hint: "Backward host − that of the modules in it: of operators that it called itself",
    name: "backward_host_self_ms",
    of: (data) => data.backwardHostSelfMs,
    isSelf: true,
    part: "backward",
  },
  {
    key: "backward_device",
    title: "Backward\ndevice",
    hint: "Sum of the durations of what those launched on the device",
    name: "backward_device_ms",
    of: (data) => data.backwardDeviceMs,
    isDevice: true,
    part: "backward",
  },
  {
    key: "backward_device_self",
    title: "Backward\ndevice self",
    hint: "Backward device − that of the modules in it",
    name: "backward_device_self_ms",
    of: (data) => data.backwardDeviceSelfMs,
    isDevice: true,
    isSelf: true,
    part: "backward",
  },
];

export const TIME_KEYS: readonly string[] = [
  "module",
  ...COLUMNS.map(({ key }) => key),
];

/** Room for `12.34 ms`, and for `1,234` calls. */
const TIME_PX = 72;
const COUNT_PX = 60;
/** Short enough that all columns of a trace with devices fit a screen of 1280 px. */
const MODULE_PX = 208;

/** What a trace does not know has no columns, rather than zeros. */
function columnsOf(data: ModuleTimesResponse): readonly TimeColumn[] {
  return COLUMNS.filter(
    ({ isDevice, part }) =>
      (isDevice !== true || data.hasDevices) &&
      (part !== "backward" || knowsBackward(data)),
  );
}

export function timeColumns(
  data: ModuleTimesResponse,
  paths: readonly string[],
  theme: Theme,
): readonly TreeColumn[] {
  return [
    {
      key: "module",
      title: "Module",
      numeric: false,
      minWidthPx: MODULE_PX,
      isTree: true,
      cell: (id) => ({ text: data.name[id] ?? "", title: paths[id] ?? "" }),
    },
    ...columnsOf(data).map((column): TreeColumn => {
      const values = column.of(data);
      const all = allOf(column, data);
      const { key, title, hint, part } = column;
      return {
        key,
        title,
        hint,
        numeric: true,
        minWidthPx: leastWidth(column),
        cell: (id) => {
          const value = values[id] ?? NaN;
          const tone = value === 0 ? { tone: "quiet" as const } : {};
          if (part === undefined) return { text: formatInteger(value), ...tone };
          const share = all > 0 ? value / all : 0;
          return {
            text: formatSeconds(value / 1e3),
            title: `${value} ms: ${(100 * share).toFixed(1)} % of all modules`,
            ...tone,
            bar: { from: 0, to: Math.min(share, 1), colour: partColour(theme, part) },
          };
        },
      };
    }),
  ];
}

function leastWidth({ title, isCount }: TimeColumn): number {
  return Math.max(isCount === true ? COUNT_PX : TIME_PX, headingWidth(title, false));
}

/** What all modules took; times with the modules inside are summed over the outermost. */
function allOf(column: TimeColumn, data: ModuleTimesResponse): number {
  return column
    .of(data)
    .reduce(
      (sum, one, id) =>
        column.isSelf === true || (data.parent[id] ?? -1) < 0 ? sum + one : sum,
      0,
    );
}

/** Modules whose path holds every word; null where nothing is searched. */
function found(paths: readonly string[], text: string): Uint8Array | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return Uint8Array.from(paths, (path) =>
    Number(words.every((word) => path.toLowerCase().includes(word))),
  );
}

/** `toggled` are modules opened or closed by hand, by path. */
export function timeRows(
  data: ModuleTimesResponse,
  tree: Tree,
  paths: readonly string[],
  shown: {
    readonly sort: Sort;
    readonly find: string;
    readonly depth: number;
    readonly toggled: ReadonlySet<string>;
  },
): readonly TreeRow[] {
  const { sort, depth, toggled } = shown;
  const column = COLUMNS.find(({ key }) => key === sort.key);
  const sign = sort.descending ? -1 : 1;
  const { compare } = new Intl.Collator("en", { numeric: true });
  return treeRows(tree, {
    order:
      column === undefined
        ? (a, b) => sign * compare(data.name[a] ?? "", data.name[b] ?? "")
        : orderBy(column.of(data), sort.descending),
    isExpanded: (id) => tree.depth(id) < depth !== toggled.has(paths[id] ?? ""),
    matches: found(paths, shown.find),
  });
}

export function timesTable(data: ModuleTimesResponse, paths: readonly string[]): Table {
  return {
    numRows: paths.length,
    columns: [
      { name: "module", values: paths },
      ...columnsOf(data).map(({ name, of }) => ({ name, values: of(data) })),
    ],
  };
}
