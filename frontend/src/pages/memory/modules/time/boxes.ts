/** Modules as nested boxes, as wide as the time they took. Pure. */

import type { ModuleTimesResponse } from "../../../../api/types.gen";
import type { Tree } from "../../../../model/tree";
import { knowsBackward } from "../../../time/profiled/module_backward";

export type FlameTime = "host" | "device" | "backward_host" | "backward_device";

/** Word and hint of each; a trace has those of what it knows. */
export const FLAME_WORDS: Readonly<Record<FlameTime, readonly [string, string]>> = {
  host: ["Host", "Forward on the host, with the modules in it"],
  device: ["Device", "What forwards launched on the device, with the modules in it"],
  backward_host: ["Host, backward", "Backward of what the module ran, on the host"],
  backward_device: [
    "Device, backward",
    "Backward of what the module ran, on the device",
  ],
};

export function flameTimes(data: ModuleTimesResponse): readonly FlameTime[] {
  const all: readonly FlameTime[] = data.hasDevices
    ? ["device", "backward_device", "host", "backward_host"]
    : ["host", "backward_host"];
  return knowsBackward(data) ? all : all.filter((one) => !one.startsWith("backward"));
}

/** Milliseconds of each module, with what is in it. */
export function flameValues(data: ModuleTimesResponse, time: FlameTime): Float64Array {
  switch (time) {
    case "host":
      return data.hostMs;
    case "device":
      return data.deviceMs;
    case "backward_host":
      return data.backwardHostMs;
    case "backward_device":
      return data.backwardDeviceMs;
  }
}

/** Shares are of the whole width; rows count from the top, the outermost module. */
export interface ModuleBox {
  readonly id: number;
  readonly x: number;
  readonly width: number;
  readonly row: number;
}

const LEAST_SHARE = 0.001;

/**
 * Boxes of a tree below a module, or of all of it where that is null. Those around it
 * stand above, as wide as everything: a click on one leads out again. Narrower ones than
 * can be seen are left out with all they hold.
 */
export function moduleBoxes(
  tree: Tree,
  values: Float64Array,
  zoomed: number | null,
): readonly ModuleBox[] {
  const around = zoomed === null ? [] : tree.ancestors(zoomed);
  const boxes: ModuleBox[] = around.map((id, row) => ({ id, x: 0, width: 1, row }));
  const first = zoomed === null ? tree.roots : [zoomed];
  const whole = first.reduce((sum, id) => sum + (values[id] ?? 0), 0);
  if (!(whole > 0)) return boxes;
  const open: {
    readonly ids: ArrayLike<number>;
    readonly x: number;
    readonly row: number;
  }[] = [{ ids: first, x: 0, row: around.length }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    let x = next.x;
    for (const id of longestFirst(next.ids, values)) {
      const width = (values[id] ?? 0) / whole;
      if (!(width >= LEAST_SHARE)) break;
      boxes.push({ id, x, width, row: next.row });
      open.push({ ids: tree.children(id), x, row: next.row + 1 });
      x += width;
    }
  }
  return boxes;
}

function longestFirst(ids: ArrayLike<number>, values: Float64Array): readonly number[] {
  return Array.from(ids).sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b);
}
