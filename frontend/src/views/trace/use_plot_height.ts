/** What is left of the window for the plot, below the rows above it. */

import { useLayoutEffect, useState } from "preact/hooks";
import { RULER_PX } from "./paint_ruler";

/** The summary, and the page's own edge. */
const BELOW_PX = 60;

export function usePlotHeight(above: { readonly current: HTMLElement | null }): number {
  const [px, setPx] = useState(480);
  useLayoutEffect(() => {
    const element = above.current;
    if (element === null) return undefined;
    const measure = (): void => {
      // A hidden TensorBoard tab has no size; keep the last one.
      if (window.innerHeight === 0) return;
      const page = document.getElementById("content")?.scrollTop ?? 0;
      const top = element.getBoundingClientRect().bottom + page;
      setPx(Math.round(window.innerHeight - top - RULER_PX - BELOW_PX));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [above]);
  return px;
}
