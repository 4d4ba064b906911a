/**
 * The part of the picture in sight: how high it is at rest, and its words in the URL,
 * written once it rests and followed when a link or the back button says another.
 */

import type { HistoryDevice } from "../../../api/types.gen";
import { useLateWords } from "../../../base/late_words";
import type { Viewport } from "../../../render/viewport";
import type { BlockController } from "../../../widgets/block_stack/controller";
import type { BlockTile } from "../../../widgets/block_stack/tile";
import { writeState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { peakOf } from "../history/moment";
import { BLOCKS, type BlocksState } from "./state";

/** Room above the highest line. */
const HEADROOM = 1.08;
/** Reserved memory beyond this much of what is live would press the blocks flat. */
const MOST_RESERVED = 1.7;
/** The device's own size is a line of the picture where it is nearer than this. */
const MOST_CAPACITY = 1.3;

/** Bytes at the top of the picture; `part`: of one stream or pool, all of it. */
export function topOf(device: HistoryDevice, part: BlockTile | null = null): number {
  const highest = (level: "active" | "reserved"): number =>
    part === null
      ? (peakOf(device, level)?.bytes ?? 0)
      : part.answer.columns[level].reduce((high, one) => (one > high ? one : high), 0);
  const [active, reserved] = [highest("active"), highest("reserved")];
  let top = Math.max(active, 1);
  if (reserved <= MOST_RESERVED * active) top = Math.max(top, reserved);
  const capacity = device.capacityBytes ?? Infinity;
  if (capacity <= MOST_CAPACITY * top) top = Math.max(top, capacity);
  return top * HEADROOM;
}

/** The function returned is told every viewport. */
export function useViewWords(
  controller: BlockController | null,
  { x, y }: Pick<BlocksState, "x" | "y">,
  { params, setParams }: Pick<ViewProps, "params" | "setParams">,
): (view: Viewport) => void {
  const write = useLateWords({
    params,
    setParams,
    names: Object.keys(writeState(BLOCKS, { x: null, y: null })),
    follow: () => {
      if (controller === null) return;
      const { x0, x1, y0, y1 } = controller.world;
      controller.setView({
        ...{ x0: x?.low ?? x0, x1: x?.high ?? x1 },
        ...{ y0: y?.high ?? y0, y1: y?.low ?? y1 },
      });
    },
    atFirst: true,
    ready: controller !== null,
  });
  return ({ x0, x1, y0, y1 }) => {
    if (controller === null) return;
    const { world } = controller;
    const wide = x0 <= world.x0 && x1 >= world.x1;
    const tall = y1 <= world.y1 && y0 >= world.y0;
    write(() =>
      writeState(BLOCKS, {
        x: wide ? null : { low: x0, high: x1 },
        y: tall ? null : { low: y1, high: y0 },
      }),
    );
  };
}
