/**
 * The picture's moving parts: canvases, the raster surface and the gestures. It holds the
 * viewport; the component above holds what the user chose.
 */

import { signal } from "@preact/signals";
import { attachGestures, type Axes, type PointPx } from "../../render/gestures";
import { runPick } from "../../render/runs";
import { RasterSurface } from "../../render/surface";
import type { Limits, RectPx, SizePx, Viewport } from "../../render/viewport";
import { clampView, pxToX, sameView, xToPx } from "../../render/viewport";
import { cursorScene } from "./cursor_scene";
import type { BlockEvents, BlockHover, BlockInputs } from "./inputs";
import { directLabels, type DirectLabel } from "./labels";
import { FONT } from "../export/pen";
import { devicePx, fitted, pixelRatio } from "../plot/canvas";
import {
  BOLD,
  GUTTER,
  paintAxes,
  paintLines,
  totalHeight,
  widthIn,
  type BlockScene,
} from "./paint";
import { paintCursor } from "./paint_cursor";
import type { BlockTile } from "./tile";
import { TileLayers } from "./tile_layers";

/** A gesture has settled once nothing moved for this long. */
const SETTLE_MS = 140;
/** Drawn beyond either side, as a share of the width. */
const MARGIN_SHARE = 0.2;
/** The least part of an axis, in events or milliseconds, and of the bytes. */
const LEAST_EVENTS = 8;
const LEAST_SHARE = 1e-7;
const LEAST_BYTES = 4096;
/** Room above the highest total when the height is fitted. */
const FIT_ROOM = 1.06;

export class BlockController {
  readonly hovered = signal<BlockHover | null>(null);
  /** null while drawing works. */
  readonly failure = signal<string | null>(null);
  readonly #surface: RasterSurface;
  readonly #layers: TileLayers;
  readonly #under: HTMLCanvasElement;
  readonly #over: HTMLCanvasElement;
  readonly #line: HTMLCanvasElement;
  readonly #events: () => BlockEvents;
  readonly #stop: (() => void)[] = [];
  #inputs: BlockInputs;
  #view: Viewport;
  #size: SizePx = { widthPx: 1, heightPx: 1 };
  #labels: readonly DirectLabel[] = [];
  #box: RectPx | null = null;
  #pointer: PointPx | null = null;
  #settle: number | null = null;
  #everSettled = false;
  #frame: number | null = null;
  #dirty = { picture: false, lines: false };

  constructor(
    plot: HTMLElement,
    canvases: {
      readonly under: HTMLCanvasElement;
      readonly cells: HTMLCanvasElement;
      readonly over: HTMLCanvasElement;
      readonly line: HTMLCanvasElement;
    },
    inputs: BlockInputs,
    events: () => BlockEvents,
  ) {
    this.#under = canvases.under;
    this.#over = canvases.over;
    this.#line = canvases.line;
    this.#inputs = inputs;
    this.#events = events;
    this.#view = this.world;
    this.#surface = new RasterSurface(
      canvases.cells,
      {
        onPaint: (frame) => {
          this.failure.value = null;
          // What lies under a resting pointer may have changed, or become sharper.
          if (this.#pointer !== null) this.#hover(this.#pointer);
          plot.dataset["drawMs"] = frame.drawMs.toFixed(1);
        },
        onFailure: (message) => {
          this.failure.value = message;
        },
      },
      MARGIN_SHARE,
    );
    this.#layers = new TileLayers(this.#surface);
    this.#stop.push(this.#listen(plot));
    this.#adopt(null);
  }

  get world(): Viewport {
    const { axis, topBytes } = this.#inputs;
    return { x0: axis.low, x1: axis.high, y0: topBytes, y1: 0 };
  }

  get limits(): Limits {
    const { world } = this;
    const least = this.#inputs.axis.kind === "event" ? LEAST_EVENTS : 0;
    const leastX = Math.max(least, (world.x1 - world.x0) * LEAST_SHARE);
    return { world, leastX, leastY: Math.min(LEAST_BYTES, world.y0) };
  }

  get view(): Viewport {
    return this.#view;
  }

  get size(): SizePx {
    return this.#size;
  }

  update(inputs: BlockInputs): void {
    const before = this.#inputs;
    if (before === inputs) return;
    this.#inputs = inputs;
    this.#adopt(before);
  }

  /** CSS px of the plot itself. */
  resize(size: SizePx): void {
    this.#size = size;
    this.#paintSoon(true);
    // Nothing moves yet when a picture appears: its first tile is asked for at once.
    if (this.#everSettled) this.#settleSoon();
    else this.#settleNow();
  }

  setView(view: Viewport): void {
    const next = clampView(view, this.limits);
    if (sameView(next, this.#view)) return;
    this.#view = next;
    this.#paintSoon(true);
    this.#events().onView(next, false);
    this.#settleSoon();
  }

  fit(): void {
    this.setView(this.world);
  }

  /** The highest total in sight reaches nearly to the top. */
  fitHeight(): void {
    const { x0, x1 } = this.#view;
    const tile = this.#lineTile();
    if (tile === null) return;
    const { edge, active } = tile.answer.columns;
    let top = 0;
    active.forEach((bytes, column) => {
      const seen = (edge[column + 1] ?? 0) > x0 && (edge[column] ?? 0) < x1;
      if (seen) top = Math.max(top, bytes);
    });
    this.setView({ x0, x1, y0: Math.max(top * FIT_ROOM, LEAST_BYTES), y1: 0 });
  }

  /** Bring a moment into sight without changing the scale. */
  reveal(moment: number): void {
    const x = this.#inputs.axis.xOf(moment);
    const { x0, x1 } = this.#view;
    const slack = (x1 - x0) * 0.05;
    if (x >= x0 + slack && x <= x1 - slack) return;
    const half = (x1 - x0) / 2;
    this.setView({ ...this.#view, x0: x - half, x1: x + half });
  }

  /** Put the cursor at x, or on a block, as the pointer would. */
  moveTo(x: number, y: number | null = null): BlockHover | null {
    const px = xToPx(this.#view, this.#size.widthPx, x);
    const share =
      y === null ? 0.5 : (y - this.#view.y0) / (this.#view.y1 - this.#view.y0);
    const at = { x: px, y: share * this.#size.heightPx };
    const found = this.#hoverAt(at);
    this.hovered.value = found === null ? null : { ...found, x };
    this.#paintSoon(false);
    return this.hovered.peek();
  }

  clearCursor(): void {
    this.#pointer = null;
    this.hovered.value = null;
    this.#paintSoon(false);
  }

  /** The finest tile that shows the middle of the view. */
  get tile(): BlockTile | null {
    return this.#tileAt((this.#view.x0 + this.#view.x1) / 2);
  }

  /** The blocks as drawn now, for pictures. */
  cells(): HTMLCanvasElement {
    return this.#surface.canvas;
  }

  dispose(): void {
    for (const stop of this.#stop) stop();
    if (this.#settle !== null) window.clearTimeout(this.#settle);
    if (this.#frame !== null) window.cancelAnimationFrame(this.#frame);
    this.#surface.dispose();
  }

  scene(): BlockScene {
    return {
      ...this.#inputs.scene,
      view: this.#view,
      size: this.#size,
      axis: this.#inputs.axis,
      tile: this.#lineTile(),
      labels: this.#labels,
    };
  }

  #tileAt(x: number): BlockTile | null {
    const { tiles } = this.#inputs;
    return tiles.findLast((tile) => x >= tile.low && x <= tile.high) ?? null;
  }

  /** Lines are drawn of one tile: the finest that covers all, else the coarsest. */
  #lineTile(): BlockTile | null {
    const { tiles } = this.#inputs;
    const { x0, x1 } = this.#view;
    const covering = tiles.findLast((tile) => tile.low <= x0 && tile.high >= x1);
    return covering ?? tiles[0] ?? null;
  }

  #adopt(before: BlockInputs | null): void {
    const { tiles, colours, axis, topBytes } = this.#inputs;
    if (before?.tiles !== tiles) this.#layers.set(tiles);
    if (before?.tiles !== tiles || before.colours !== colours) {
      this.#layers.colour(colours);
      this.#settleSoon();
    }
    if (before?.axis !== axis || before.topBytes !== topBytes) {
      const whole = before?.axis !== axis || this.#wasWhole(before);
      this.#view = whole ? this.world : clampView(this.#view, this.limits);
      this.#paintSoon(true);
    }
    this.#paintSoon(false);
    this.#dirty.lines = true;
  }

  /** Whether everything was in sight, so that it stays so while the history grows. */
  #wasWhole({ axis, topBytes }: BlockInputs): boolean {
    return sameView(this.#view, { x0: axis.low, x1: axis.high, y0: topBytes, y1: 0 });
  }

  #settleSoon(): void {
    if (this.#settle !== null) window.clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => {
      this.#settle = null;
      this.#settleNow();
    }, SETTLE_MS);
  }

  #settleNow(): void {
    if (this.#size.widthPx < 2) return;
    this.#everSettled = true;
    this.#relabel();
    this.#events().onView(this.#view, true);
  }

  #relabel(): void {
    const context = this.#over.getContext("2d");
    const { tile } = this;
    if (context === null) return;
    const widths = { block: widthIn(context, FONT), band: widthIn(context, BOLD) };
    this.#labels =
      tile === null
        ? []
        : directLabels(
            { tile, view: this.#view, size: this.#size },
            { ...this.#inputs.names, widthOf: (text, kind) => widths[kind](text) },
          );
    this.#dirty.lines = true;
    this.#paintSoon(false);
  }

  /** Everything is painted once a frame, however often it changes. */
  #paintSoon(picture: boolean): void {
    this.#dirty.picture ||= picture;
    this.#frame ??= window.requestAnimationFrame(() => {
      this.#frame = null;
      this.#paint();
    });
  }

  #paint(): void {
    const { picture, lines } = this.#dirty;
    this.#dirty = { picture: false, lines: false };
    if (this.#size.widthPx < 2) return;
    const scene = this.scene();
    if (picture) this.#surface.show(this.#view, devicePx(this.#size));
    if (picture || lines) {
      this.#on(this.#under, scene, (context) => paintAxes(context, scene));
      this.#on(this.#over, scene, (context) => paintLines(context, scene));
    }
    this.#on(this.#line, scene, (context) => this.#paintPointer(context));
  }

  #on(
    canvas: HTMLCanvasElement,
    scene: BlockScene,
    paint: (context: CanvasRenderingContext2D) => void,
  ): void {
    const width = this.#size.widthPx + GUTTER.left + GUTTER.right;
    const context = fitted(canvas, width, totalHeight(this.#size, scene.marks));
    if (context !== null) paint(context);
  }

  #paintPointer(context: CanvasRenderingContext2D): void {
    paintCursor(
      context,
      cursorScene(this.#inputs, {
        view: this.#view,
        size: this.#size,
        tile: this.tile,
        hover: this.hovered.peek(),
        box: this.#box,
      }),
    );
  }

  #hoverAt(at: PointPx): BlockHover | null {
    const x = pxToX(this.#view, this.#size.widthPx, at.x);
    const tile = this.#tileAt(x);
    if (tile === null) return null;
    const column = tile.columnAt(x);
    if (column < 0) return null;
    const moment = tile.answer.columns.moment[column] ?? -1;
    const found = { at, x, tile, column, moment, block: null, rest: null };
    const ratio = pixelRatio();
    const pick = this.#surface.pick(at.x * ratio, at.y * ratio);
    if (pick?.kind !== "quad" || this.#layers.of(pick.layer) !== tile) return found;
    const what = runPick(tile.runs, pick.id);
    if (what.kind === "block") {
      return { ...found, block: tile.factsOf(tile.runs.slot[what.run] ?? 0) };
    }
    const bytes = tile.runs.rest[what.band * tile.numColumns + what.column] ?? 0;
    return { ...found, rest: { band: what.band, bytes } };
  }

  #hover(at: PointPx | null): void {
    this.#pointer = at;
    this.hovered.value = at === null ? null : this.#hoverAt(at);
    this.#paintSoon(false);
  }

  #listen(plot: HTMLElement): () => void {
    return attachGestures(plot, {
      origin: { x: GUTTER.left, y: GUTTER.top },
      size: () => this.#size,
      view: () => this.#view,
      limits: () => this.limits,
      wheelAxes: (at): Axes => (at.x < 0 ? "y" : "x"),
      dragAxes: "both",
      onView: (view) => this.setView(view),
      onFit: () => this.fit(),
      onBox: (box) => {
        this.#box = box;
        this.#paintSoon(false);
      },
      onBoxDone: (view, box) => {
        if (box.width >= 2) this.#events().onRange(view.x0, view.x1);
      },
      onHover: (point) =>
        this.#hover(point !== null && this.#inside(point) ? point : null),
      onClick: (at) => {
        plot.focus({ preventScroll: true });
        const found = this.#inside(at) ? this.#hoverAt(at) : null;
        if (found !== null) this.#events().onPin(found);
      },
    });
  }

  #inside({ x, y }: PointPx): boolean {
    const { widthPx, heightPx } = this.#size;
    return x >= 0 && y >= 0 && x < widthPx && y < heightPx;
  }
}
