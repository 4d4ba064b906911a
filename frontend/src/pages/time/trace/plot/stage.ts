/**
 * Slices are on the raster; overlays and ruler on canvases of their own. One frame at a
 * time; a pan draws cached tiles and requests more.
 */

import { signal } from "@preact/signals";
import { createRef } from "preact";
import type { Theme } from "../../../../base/tokens";
import {
  attachGestures,
  viewAfterKey,
  type PointPx,
} from "../../../../render/gestures";
import { RasterSurface } from "../../../../render/raster/surface";
import { pixelRatio, pxToX, xToPx } from "../../../../render/viewport";
import type { Limits, RectPx, Viewport } from "../../../../render/viewport";
import { fitted, Turns } from "../../../../widgets/plot/canvas";
import { paintRuler, RULER_PX } from "../paint/lines";
import { paintOverlay } from "../paint/paint";
import { pictureOf, TraceColours, type Picture } from "../paint/quads";
import type { Timeline } from "../state/timeline";
import { markNear, marksOf, type Piece } from "../tiles/tile";
import type { useTraceTiles } from "../tiles/loader";
import {
  around,
  LANE_PX,
  laneTop,
  LEAST_NS,
  rowsBetween,
  sourceOf,
  tracksQuery,
  type Layout,
  type Place,
  type Row,
} from "./layout";

const MARGIN_SHARE = 0.25;
/** A lower box is a range of time; a taller one is also about its tracks. */
const FLAT_PX = 10;

export interface PlotNow {
  readonly trace: Timeline;
  readonly layout: Layout;
  readonly tiles: ReturnType<typeof useTraceTiles>;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface Hover {
  readonly point: PointPx;
  readonly ns: number;
  readonly piece: Piece | null;
  readonly row: Row | null;
}

const COLOURS: Readonly<Record<Theme, TraceColours>> = {
  light: new TraceColours("light"),
  dark: new TraceColours("dark"),
};

export class PlotStage {
  /** Its `data-` attributes: what is drawn and how long it took. */
  readonly root = createRef<HTMLDivElement>();
  readonly scroller = createRef<HTMLDivElement>();
  readonly target = createRef<HTMLDivElement>();
  readonly cells = createRef<HTMLCanvasElement>();
  readonly over = createRef<HTMLCanvasElement>();
  readonly ruler = createRef<HTMLCanvasElement>();
  readonly hover = signal<Hover | null>(null);
  readonly box = signal<RectPx | null>(null);
  readonly failure = signal("");
  /** For screen readers: the chosen slice. */
  readonly spoken = signal("");
  picture: Picture | null = null;
  #scrollPx = 0;
  #surface: RasterSurface | null = null;
  /** Inputs of the last picture. */
  #madeOf: readonly unknown[] = [];
  readonly #turns = new Turns(
    () => this.refresh(true),
    () => this.#paint(),
  );

  /** `now`: of the newest rendering. */
  constructor(public now: PlotNow) {}

  attach(): (() => void) | undefined {
    const [root, target, cells] = [
      this.root.current,
      this.target.current,
      this.cells.current,
    ];
    if (root === null || target === null || cells === null) return undefined;
    const { failure } = this;
    const surface = new RasterSurface(cells, { root, failure }, MARGIN_SHARE);
    this.#surface = surface;
    this.#madeOf = [];
    const stop = this.#listen(target);
    return () => {
      stop();
      this.#turns.stop();
      surface.dispose();
      this.#surface = null;
    };
  }

  get view(): Viewport {
    const { trace, heightPx } = this.now;
    const { low, high } = trace.shown.peek();
    const y0 = this.#scrollPx;
    return { x0: low, x1: high, y0, y1: y0 + heightPx };
  }

  scrolled(): void {
    this.#scrollPx = this.scroller.current?.scrollTop ?? 0;
    this.moved();
  }

  moved(): void {
    this.refresh(false);
    this.#turns.moved();
  }

  paintSoon(): void {
    this.#turns.paintSoon();
  }

  refresh(settled: boolean): void {
    const { widthPx, tiles } = this.now;
    this.paintSoon();
    if (widthPx < 1) return;
    const device = Math.round(widthPx * pixelRatio());
    tiles.look({ ...this.view, widthPx: device }, settled);
    this.rebuild();
  }

  rebuild(): void {
    const { trace, layout, tiles } = this.now;
    const { find } = trace.state;
    const own = COLOURS[trace.view.theme];
    const madeOf = [layout, own, find, ...tiles.shown];
    const before = this.#madeOf;
    const isSame =
      madeOf.length === before.length &&
      madeOf.every((origin, i) => origin === before[i]);
    const root = this.root.current;
    if (isSame || this.#surface === null || root === null) return;
    this.#madeOf = madeOf;
    this.#surface.setColours({ background: own.background });
    const made = pictureOf(tiles.shown, layout, own, find);
    this.picture = made;
    this.#surface.setLayer("slices", 0, { kind: "quads", quads: made.quads });
    // No duration until the new picture is drawn.
    delete root.dataset["drawMs"];
    root.dataset["pieces"] = made.quads.colour.length.toString();
    this.paintSoon();
  }

  bringIntoSight({ trackKey, level }: Place): void {
    const { layout, heightPx } = this.now;
    const top = laneTop(layout, trackKey, level);
    if (top === null) return;
    const seen = this.#scrollPx;
    if (top < seen + 8 || top + LANE_PX > seen + heightPx - 8) {
      this.scroller.current?.scrollTo({ top: Math.max(0, top - heightPx / 3) });
    }
  }

  onKey(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const pagePx = this.now.heightPx * 0.8;
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: 2 * LANE_PX,
      ArrowUp: -2 * LANE_PX,
      PageDown: pagePx,
      PageUp: -pagePx,
    };
    const by = moves[event.key];
    if (by !== undefined) this.scroller.current?.scrollBy({ top: by });
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (!this.#toNeighbour(event.key === "ArrowRight" ? 1 : -1)) return;
    } else {
      const next = viewAfterKey(event.key, this.view, this.#limits(), "x");
      if (next === null) return;
      this.#show(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  #toNeighbour(sign: number): boolean {
    const { selected, choose } = this.now.trace;
    const piece = pieceBeside(this.picture, selected, sign, this.view.x0);
    if (piece === null) return false;
    choose(refOf(piece));
    const ns = piece.endNs - piece.startNs;
    this.spoken.value = `${piece.name}, ${ns.toLocaleString("en-US")} nanoseconds`;
    return true;
  }

  #limits(): Limits {
    const { trace, layout, heightPx } = this.now;
    const { low, high } = trace.extent;
    const y1 = Math.max(layout.totalPx, heightPx);
    return { world: { x0: low, x1: high, y0: 0, y1 }, leastX: LEAST_NS, leastY: 1 };
  }

  #show({ x0, x1, y0 }: Viewport): void {
    const { shown, setWindow } = this.now.trace;
    if (Math.abs(y0 - this.#scrollPx) >= 1)
      this.scroller.current?.scrollTo({ top: y0 });
    const { low, high } = shown.peek();
    if (x0 !== low || x1 !== high) setWindow({ low: x0, high: x1 });
  }

  #listen(target: HTMLElement): () => void {
    return attachGestures(target, {
      origin: { x: 0, y: 0 },
      size: () => this.now,
      view: () => this.view,
      limits: () => this.#limits(),
      wheelAxes: () => "x",
      dragAxes: "both",
      onView: (next) => this.#show(next),
      onFit: () => {
        const { fit, setWindow } = this.now.trace;
        const piece = this.hover.peek()?.piece ?? null;
        if (piece === null) fit();
        else setWindow(around(piece.startNs, piece.endNs, 0.1));
      },
      onBox: (drawn) => {
        this.box.value = drawn;
      },
      onBoxDone: ({ x0, x1, y0, y1 }, { height }) => {
        const { layout, trace } = this.now;
        const rows = height >= FLAT_PX ? rowsBetween(layout, y0, y1) : [];
        trace.setRange(Math.floor(x0), Math.ceil(x1), tracksQuery(rows));
      },
      onHover: (point) => {
        this.hover.value = point && this.#hoverAt(point);
      },
      onClick: (point) => {
        const { setWindow, choose, state, close } = this.now.trace;
        const { piece } = this.#hoverAt(point);
        const { x0, x1 } = this.view;
        if (piece === null) {
          if (state.slice !== null) close();
        } else if (piece.count > 1 && x1 - x0 > LEAST_NS) {
          // A click zooms into a merged block, and separates instants that coincide.
          const { startNs, endNs } = piece;
          const slack = endNs > startNs ? (endNs - startNs) * 0.3 : (x1 - x0) / 40;
          setWindow({ low: startNs - slack, high: endNs + slack });
        } else choose(refOf(piece));
      },
    });
  }

  #hoverAt(point: PointPx): Hover {
    const { layout, widthPx } = this.now;
    const { x0, x1, y0 } = this.view;
    const ns = pxToX(this.view, widthPx, point.x);
    const y = y0 + point.y;
    const [row = null] = rowsBetween(layout, y, y + 0.01);
    if (row?.hasMarks === true && y < row.y + LANE_PX) {
      const marks = marksOf(this.picture?.tiles ?? [], row.key);
      return { point, ns, row, piece: markNear(marks, ns, (x1 - x0) / widthPx) };
    }
    const pick = this.#surface?.pick(point);
    return { point, ns, row, piece: (pick && this.picture?.pieceOf(pick.id)) ?? null };
  }

  #paint(): void {
    const { trace, layout, widthPx, heightPx } = this.now;
    const { view, picture } = this;
    const root = this.root.current;
    if (widthPx < 1 || root === null) return;
    const begin = performance.now();
    this.#surface?.show(view, { widthPx, heightPx });
    const toX = (ns: number): number => xToPx(view, widthPx, ns);
    const to = { trace, layout, view, widthPx, heightPx, toX };
    const hovered = this.hover.peek()?.piece ?? null;
    const drawn = this.box.peek();
    const isFlat = drawn !== null && drawn.height < FLAT_PX;
    const box = isFlat ? { ...drawn, y: 0, height: heightPx } : drawn;
    const context = fitted(this.over.current, widthPx, heightPx);
    if (context !== null && picture !== null)
      paintOverlay({ ...to, context, picture, hovered, box });
    const ruler = fitted(this.ruler.current, widthPx, RULER_PX);
    if (ruler !== null) paintRuler(ruler, view, widthPx, trace);
    root.dataset["paintMs"] = (performance.now() - begin).toFixed(2);
  }
}

function refOf({ trackKey, row }: Piece) {
  return { source: sourceOf(trackKey), row };
}

/** A slice's neighbour on its level, among those drawn; `fromNs`: without a slice. */
function pieceBeside(
  picture: Picture | null,
  from: Place | null,
  sign: number,
  fromNs: number,
): Piece | null {
  const tile = picture?.tiles.at(-1);
  if (tile === undefined) return null;
  const { lanes, count } = tile.answer;
  const isBeside = (start: number, i: number): boolean => {
    if (count[i] !== 1) return false;
    if (from === null) return start >= fromNs;
    const lane = lanes[tile.lane[i] ?? -1];
    const isOnLane = lane?.track === from.trackKey && lane.level === from.level;
    return isOnLane && sign * (start - from.startNs) > 0;
  };
  // Pieces of a lane are in order of time.
  const isLast = sign < 0 && from !== null;
  const { start } = tile;
  const index = isLast ? start.findLastIndex(isBeside) : start.findIndex(isBeside);
  return index < 0 ? null : tile.piece(index);
}
