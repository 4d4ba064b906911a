/**
 * The part of the picture in sight, in the URL: written once it rests, and followed when
 * a link or the back button says another.
 */

import type { Viewport } from "../../../../render/viewport";
import type { BlockController } from "../../../../widgets/block_stack/controller";
import { viewWords } from "../../history/params";
import { useLateWords } from "../../../../base/use_late_words";
import type { XRange } from "../../../../widgets/line_chart/types";
import type { ViewProps } from "../../../shared/view_props";
import type { AllocationsParams } from "./params";

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
