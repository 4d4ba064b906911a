/**
 * The part of the picture in sight, in the URL: written once it rests, and followed when
 * a link or the back button says another.
 */

import type { HistoryDevice } from "../../../../api/types.gen";
import type { Viewport } from "../../../../render/viewport";
import type { BlockController } from "../../../../widgets/block_stack/controller";
import { peakOf } from "../../history/moment";
import { viewWords } from "../../history/params";
import type { BlockTile } from "../../../../widgets/block_stack/tile";
import { useLateWords } from "../../../../base/use_late_words";
import type { XRange } from "../../../../widgets/line_chart/types";
import type { ViewProps } from "../../../shared/view_props";
import type { AllocationsParams } from "./params";

/** Room above the highest line. */
const HEADROOM = 1.08;
/** Reserved memory beyond this much of what is live would press the blocks flat. */
const MOST_RESERVED = 1.7;
/** The device's own size is a line of the picture where it is nearer than this. */
const MOST_CAPACITY = 1.3;

/** Bytes at the top of the picture; `part`: of one stream or pool, all of it. */
export function topOf(device: HistoryDevice, part: BlockTile | null = null): number {
  const columns = part?.answer.columns;
  const highest = (values: Float64Array): number =>
    values.reduce((high, one) => (one > high ? one : high), 0);
  const active = columns ? highest(columns.active) : (peakOf(device)?.bytes ?? 0);
  const reserved = columns
    ? highest(columns.reserved)
    : (peakOf(device, "reserved")?.bytes ?? 0);
  let top = Math.max(active, 1);
  if (reserved <= MOST_RESERVED * active) top = Math.max(top, reserved);
  const capacity = device.capacityBytes;
  if (capacity !== null && capacity <= MOST_CAPACITY * top)
    top = Math.max(top, capacity);
  return top * HEADROOM;
}

function spansOf(
  view: Viewport,
  world: Viewport,
): { readonly x: XRange | null; readonly y: XRange | null } {
  const wide = view.x0 <= world.x0 && view.x1 >= world.x1;
  const tall = view.y1 <= world.y1 && view.y0 >= world.y0;
  return {
    x: wide ? null : { low: view.x0, high: view.x1 },
    y: tall ? null : { low: view.y1, high: view.y0 },
  };
}

function viewOf(
  { x, y }: Pick<AllocationsParams, "x" | "y">,
  world: Viewport,
): Viewport {
  return {
    x0: x?.low ?? world.x0,
    x1: x?.high ?? world.x1,
    y0: y?.high ?? world.y0,
    y1: y?.low ?? world.y1,
  };
}

/** The function returned is told every viewport. */
export function useViewWords(
  controller: BlockController | null,
  spans: Pick<AllocationsParams, "x" | "y">,
  { params, setParams }: Pick<ViewProps, "params" | "setParams">,
): (view: Viewport) => void {
  const write = useLateWords({
    params,
    setParams,
    names: Object.keys(viewWords(null, null)),
    follow: () => controller?.setView(viewOf(spans, controller.world)),
    atFirst: true,
    ready: controller !== null,
  });
  return (view) => {
    if (controller === null) return;
    const { x, y } = spansOf(view, controller.world);
    write(() => viewWords(x, y));
  };
}
