/** Time by module: its columns, and what a flame graph of it can be as wide as. Pure. */

import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { partColour } from "../../../../render/palette";
import { barOf, durationCell } from "../../../../widgets/row_table/columns";
import { headingWidth } from "../../../../widgets/row_table/headings";
import type { RowColumn } from "../../../../widgets/row_table/row_table";
import { knowsBackward } from "../../../time/profiled/module_backward";

export const MOST_TIME = { key: "host", descending: true };

/** Its name in exports is its key, with the unit. */
interface TimeColumn {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly of: (data: ModuleTimesResponse) => Float64Array;
}

const COUNTS: readonly TimeColumn[] = [
  {
    key: "calls",
    title: "Calls",
    hint: "Calls of the module’s forward at this place in the model, while the profiler ran",
    of: (data) => data.numCalls,
  },
  {
    key: "operators",
    title: "Operators",
    hint: "Operators that the module called itself: those called by other operators, and by modules in it, do not count",
    of: (data) => data.numOperators,
  },
];

const TIMES: readonly TimeColumn[] = [
  {
    key: "host",
    title: "Host\ntotal",
    hint: "Sum of the durations of its forward on the host, with the modules in it. Python’s tracer, which shows modules, makes them slower.",
    of: (data) => data.hostMs,
  },
  {
    key: "host_self",
    title: "Host\nself",
    hint: "Host total − the modules and operators in it: its own Python",
    of: (data) => data.hostSelfMs,
  },
  {
    key: "device",
    title: "Device\ntotal",
    hint: "Sum of the durations of what its operators launched on the device, with the modules in it; what ran at the same time counts each",
    of: (data) => data.deviceMs,
  },
  {
    key: "device_self",
    title: "Device\nself",
    hint: "Sum of the durations of what the operators that it called itself launched",
    of: (data) => data.deviceSelfMs,
  },
  {
    key: "backward_host",
    title: "Backward\nhost",
    hint: "Sum on the host of the operators of backward whose forward operator lies in the module or below it. What names no forward operator counts for no module.",
    of: (data) => data.backwardHostMs,
  },
  {
    key: "backward_host_self",
    title: "Backward\nhost self",
    hint: "Backward host − that of the modules in it: of operators that it called itself",
    of: (data) => data.backwardHostSelfMs,
  },
  {
    key: "backward_device",
    title: "Backward\ndevice",
    hint: "Sum of the durations of what those launched on the device",
    of: (data) => data.backwardDeviceMs,
  },
  {
    key: "backward_device_self",
    title: "Backward\ndevice self",
    hint: "Backward device − that of the modules in it",
    of: (data) => data.backwardDeviceSelfMs,
  },
];

/** What a trace does not know has no columns, rather than zeros. */
function timesOf(data: ModuleTimesResponse): readonly TimeColumn[] {
  return TIMES.filter(
    ({ key }) =>
      (data.hasDevices || !key.includes("device")) &&
      (knowsBackward(data) || !key.startsWith("backward")),
  );
}

function partOf(key: string): "forward" | "backward" {
  return key.startsWith("backward") ? "backward" : "forward";
}

/** Room for `12.34 ms`, and for `1,234` calls. */
const TIME_PX = 72;
const COUNT_PX = 60;
/** Short enough that all columns of a trace with devices fit a screen of 1280 px. */
const MODULE_PX = 208;

export function timeColumns(
  data: ModuleTimesResponse,
  paths: readonly string[],
  theme: Theme,
): readonly RowColumn[] {
  const column = (
    { key, title, hint, of }: TimeColumn,
    leastPx: number,
    name: string,
    cell: RowColumn["cell"],
  ): RowColumn => ({
    ...{ key, title, hint, numeric: true, values: of(data) },
    width: `minmax(${Math.max(leastPx, headingWidth(title, false))}px, 1fr)`,
    exported: { name, values: of(data) },
    cell: (id) => ({
      ...cell(id),
      ...(of(data)[id] === 0 && { tone: "quiet" as const }),
    }),
  });
  return [
    {
      ...{ key: "module", title: "Module", numeric: false, isTree: true },
      width: `minmax(${MODULE_PX}px, 3fr)`,
      values: data.name,
      exported: { name: "module", values: paths },
      cell: (id) => ({ text: data.name[id] ?? "", title: paths[id] ?? "" }),
    },
    ...COUNTS.map((one) =>
      column(one, COUNT_PX, one.key, (id) => ({
        text: formatInteger(one.of(data)[id] ?? NaN),
      })),
    ),
    ...timesOf(data).map((one) => {
      const all = allOf(one, data);
      const colour = partColour(theme, partOf(one.key));
      return column(one, TIME_PX, `${one.key}_ms`, (id) => {
        const ms = one.of(data)[id] ?? NaN;
        const share = all > 0 ? (100 * ms) / all : 0;
        const cell = durationCell(ms);
        return {
          ...cell,
          title: `${cell.title ?? ""}: ${share.toFixed(1)} % of all modules`,
          bar: barOf(ms, all, colour),
        };
      });
    }),
  ];
}

/** What all modules took; times with the modules inside are summed over the outermost. */
function allOf({ key, of }: TimeColumn, data: ModuleTimesResponse): number {
  const isSelf = key.endsWith("_self");
  return of(data).reduce(
    (sum, one, id) => (isSelf || (data.parent[id] ?? -1) < 0 ? sum + one : sum),
    0,
  );
}

/** What boxes of a flame graph can be as wide as: word, hint, milliseconds, whole. */
export interface FlameTime {
  readonly key: string;
  readonly words: readonly [word: string, hint: string];
  readonly ms: Float64Array;
  readonly allMs: number;
  readonly part: "forward" | "backward";
}

/** Devices, where there are any, before the host. */
export function flameTimes(data: ModuleTimesResponse): readonly FlameTime[] {
  const times = timesOf(data).filter(({ key }) => !key.endsWith("_self"));
  return times
    .toSorted((a, b) => +b.key.includes("device") - +a.key.includes("device"))
    .map((one) => ({
      key: one.key,
      words: [one.title.replace("\n", " ").replace(" total", ""), one.hint],
      ms: one.of(data),
      allMs: allOf(one, data),
      part: partOf(one.key),
    }));
}
