/**
 * The part of the picture in sight, in the URL: written once it rests, and followed when
 * a link or the back button says another.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Viewport } from "../../../render/viewport";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { viewWords, type Span } from "../../history/params";
import { LateWords } from "../../../base/late_words";
import type { AllocationsParams } from "./params";

function spansOf(
  view: Viewport,
  world: Viewport,
): { readonly x: Span | null; readonly y: Span | null } {
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
  params: Pick<AllocationsParams, "x" | "y">,
  setParams: (changes: Readonly<Record<string, string | null>>) => void,
): (view: Viewport) => void {
  const { x, y } = params;
  const address = JSON.stringify(viewWords(x, y));
  const written = useRef("");
  const late = useMemo(() => new LateWords(), []);
  const [numWritten, setNumWritten] = useState(0);
  const write = useRef(setParams);
  write.current = setParams;
  useEffect(() => {
    if (controller === null || address === written.current) return;
    written.current = address;
    late.drop();
    controller.setView(viewOf({ x, y }, controller.world));
    // Counted: a link may lead back to what stood there before anything was written.
  }, [controller, address, numWritten]);
  useEffect(() => () => late.drop(), []);
  return (view) => {
    if (controller === null) return;
    const next = spansOf(view, controller.world);
    const words = viewWords(next.x, next.y);
    late.put(() => {
      if (JSON.stringify(words) === written.current) return;
      written.current = JSON.stringify(words);
      setNumWritten((num) => num + 1);
      write.current(words);
    });
  };
}
