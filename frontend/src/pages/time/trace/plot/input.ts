/** Pointer and keys on the plot. */

import type { Signal } from "@preact/signals";
import { attachGestures, viewAfterKey } from "../../../../render/gestures";
import type { Limits, RectPx, Viewport } from "../../../../render/viewport";
import { pieceBeside, type Hover } from "./tip";
import { LANE_PX, rowsBetween, tracksQuery, around, LEAST_NS } from "./layout";
import type { PlotProps } from "./plot";
import type { PlotStage } from "./stage";

/** A box less tall than this is a stretch of time; a taller one is also about its tracks. */
export const FLAT_PX = 10;

export interface PlotInput {
  readonly stage: () => PlotStage | null;
  readonly props: () => PlotProps;
  readonly size: () => { readonly widthPx: number; readonly heightPx: number };
  readonly scroller: () => HTMLElement | null;
  readonly hover: Signal<Hover | null>;
  readonly box: Signal<RectPx | null>;
  /** For those who cannot see which slice was chosen. */
  readonly spoken: Signal<string>;
}

const NOWHERE: Viewport = { x0: 0, x1: 1, y0: 0, y1: 1 };

function limitsOf({ props }: PlotInput): Limits {
  const { world, layout, heightPx } = props();
  const y1 = Math.max(layout.totalPx, heightPx);
  return {
    world: { x0: world.low, x1: world.high, y0: 0, y1 },
    leastX: LEAST_NS,
    leastY: 1,
  };
}

function showView({ stage, props, scroller }: PlotInput, next: Viewport): void {
  const { window: shown } = props();
  if (Math.abs(next.y0 - (stage()?.scrollPx ?? 0)) >= 1) {
    scroller()?.scrollTo({ top: next.y0 });
  }
  const before = shown.peek();
  if (next.x0 !== before.low || next.x1 !== before.high) {
    shown.value = { low: next.x0, high: next.x1 };
  }
}

/** Gives back what ends it. */
export function attachPlotGestures(target: HTMLElement, input: PlotInput): () => void {
  const { stage, props, hover } = input;
  return attachGestures(target, {
    origin: { x: 0, y: 0 },
    size: input.size,
    view: () => stage()?.view ?? NOWHERE,
    limits: () => limitsOf(input),
    wheelAxes: () => "x",
    dragAxes: "both",
    onView: (next) => showView(input, next),
    onFit: () => {
      const piece = hover.peek()?.piece ?? null;
      if (piece === null) props().onFit();
      else {
        const { startNs, durationNs } = piece;
        props().onZoomTo(around(startNs, startNs + durationNs, 0.1));
      }
    },
    onBox: (drawn) => {
      input.box.value = drawn;
    },
    onBoxDone: (chosen, drawn) => {
      const rows = rowsBetween(props().layout, chosen.y0, chosen.y1);
      const tracks = drawn.height >= FLAT_PX ? tracksQuery(rows) : "";
      props().onRange({ low: chosen.x0, high: chosen.x1 }, tracks);
    },
    onHover: (at) => {
      hover.value = at === null ? null : (stage()?.hoverAt(at) ?? null);
    },
    onClick: (at) => {
      const mark = stage()?.markAt(at) ?? null;
      if (mark !== null) {
        const view = stage()?.view ?? NOWHERE;
        // Several that fall together come apart.
        if (mark.count > 1 && view.x1 - view.x0 > LEAST_NS) {
          const slack = (view.x1 - view.x0) / 40;
          props().onZoomTo({ low: mark.timeNs - slack, high: mark.timeNs + slack });
        } else props().onInstant(mark);
        return;
      }
      const piece = stage()?.pieceAt(at) ?? null;
      if (piece !== null && piece.count > 1) {
        // A block opens into what it holds.
        const slack = (piece.durationNs || LEAST_NS) * 0.3;
        props().onZoomTo({
          low: piece.startNs - slack,
          high: piece.startNs + piece.durationNs + slack,
        });
      } else props().onSelect(piece);
    },
  });
}

export function onPlotKey(event: KeyboardEvent, input: PlotInput): void {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const { heightPx } = input.size();
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: 2 * LANE_PX,
    ArrowUp: -2 * LANE_PX,
    PageDown: heightPx * 0.8,
    PageUp: -heightPx * 0.8,
  };
  const by = moves[event.key];
  if (by !== undefined) input.scroller()?.scrollBy({ top: by });
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (!toNeighbour(input, event.key === "ArrowRight" ? 1 : -1)) return;
  } else {
    const view = input.stage()?.view ?? NOWHERE;
    const next = viewAfterKey(event.key, view, limitsOf(input), "x");
    if (next === null) return;
    showView(input, next);
  }
  event.preventDefault();
  event.stopPropagation();
}

function toNeighbour({ stage, props, spoken }: PlotInput, sign: 1 | -1): boolean {
  const now = stage();
  if (now === null) return false;
  const found = pieceBeside(now.picture, props().selected, sign, now.view.x0);
  if (found === null) return false;
  props().onSelect(found);
  spoken.value = `${found.name}, ${found.durationNs.toLocaleString("en-US")} nanoseconds`;
  return true;
}
