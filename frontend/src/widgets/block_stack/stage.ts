/** Owns the viewport and draws; the page owns the user's choices. */

import { signal } from "@preact/signals";
import { createRef, type RefObject } from "preact";
import { attachGestures, type PointPx } from "../../render/gestures";
import { runPick, type RunColours } from "../../render/raster/runs";
import { RasterSurface } from "../../render/raster/surface";
import type { Limits, RectPx, SizePx, Viewport } from "../../render/viewport";
import {
  clampView,
  devicePx,
  pxToX,
  sameView,
  xToPx,
  yToPx,
} from "../../render/viewport";
import { FONT } from "../export/pen";
import { fitted, Turns } from "../plot/canvas";
import { labelColour, runColours, tileColours, type Look } from "./paint/colours";
import { directLabels, namesOf } from "./paint/labels";
import {
  BOLD,
  GUTTER,
  paintAxes,
  paintLines,
  totalHeight,
  widthIn,
  type BlockScene,
  type ColouredLabel,
} from "./paint/paint";
import { paintCursor } from "./paint/cursor";
import type { BlockHover, BlockPicture, BlockView } from "./picture";
import type { BlockTile } from "./tile";

/** Share of the width drawn beyond either side. */
const MARGIN_SHARE = 0.2;
/** Smallest spans: events, share of the axis, bytes. */
const LEAST_EVENTS = 8;
const LEAST_SHARE = 1e-7;
const LEAST_BYTES = 4096;
const FIT_ROOM = 1.06;

export interface BlockEvents {
  /** `settled`: the gesture has ended. */
  readonly onView: (seen: BlockView, settled: boolean) => void;
  readonly onPin: (hover: BlockHover) => void;
  /** In units of the axis. */
  readonly onRange: (low: number, high: number) => void;
}

/** A change of any of these recolours all blocks. */
const LOOK: readonly (keyof Look)[] = ["theme", "only", "matches", "culprits"];

export class BlockStage {
  readonly plot = createRef<HTMLDivElement>();
  /** From bottom to top: axes, blocks, lines and labels, cursor. */
  readonly under = createRef<HTMLCanvasElement>();
  readonly cells = createRef<HTMLCanvasElement>();
  readonly over = createRef<HTMLCanvasElement>();
  readonly line = createRef<HTMLCanvasElement>();
  readonly hovered = signal<BlockHover | null>(null);
  /** "": drawing works. */
  readonly failure = signal("");
  /** Of the newest rendering. */
  events: BlockEvents | null = null;
  #surface: RasterSurface | null = null;
  /** By tile: that of the whole history stays while others come and go. */
  #colours = new WeakMap<BlockTile, RunColours>();
  /** Names are never reused: a pick in an older drawing finds no tile. */
  #layers = new Map<BlockTile, string>();
  #numLayers = 0;
  #view: Viewport;
  #size: SizePx = { widthPx: 1, heightPx: 1 };
  #labels: readonly ColouredLabel[] = [];
  #box: RectPx | null = null;
  #pointer: PointPx | null = null;
  #everSettled = false;
  readonly #turns = new Turns(
    () => this.#settled(),
    () => this.#paint(),
  );
  readonly #dirty = new Set<"picture" | "lines" | "layers">();

  constructor(public of: BlockPicture) {
    this.#view = this.world;
  }

  attach(): (() => void) | undefined {
    const [plot, cells] = [this.plot.current, this.cells.current];
    if (plot === null || cells === null) return undefined;
    const host = {
      root: plot,
      failure: this.failure,
      onDraw: () => this.#hoverAgain(),
    };
    const surface = new RasterSurface(cells, host, MARGIN_SHARE);
    const stop = this.#listen(plot);
    this.#surface = surface;
    this.#layers = new Map();
    this.#paintSoon("layers", "picture");
    this.#turns.moved();
    return () => {
      stop();
      this.#turns.stop();
      surface.dispose();
      this.#surface = null;
    };
  }

  get world(): Viewport {
    return worldOf(this.of);
  }

  get limits(): Limits {
    const { world } = this;
    const least = this.of.axis.kind === "event" ? LEAST_EVENTS : 0;
    const leastX = Math.max(least, (world.x1 - world.x0) * LEAST_SHARE);
    return { world, leastX, leastY: Math.min(LEAST_BYTES, world.y0) };
  }

  get view(): Viewport {
    return this.#view;
  }

  get size(): SizePx {
    return this.#size;
  }

  update(of: BlockPicture): void {
    const before = this.of;
    this.of = of;
    const looksElse = LOOK.some((key) => before[key] !== of[key]);
    if (looksElse) this.#colours = new WeakMap();
    if (looksElse || before.tiles !== of.tiles) {
      this.#paintSoon("layers");
      this.#turns.moved();
    }
    const isOtherAxis = before.axis !== of.axis;
    if (isOtherAxis || before.topBytes !== of.topBytes) {
      // A view of everything stays one while the history grows.
      const whole = isOtherAxis || sameView(this.#view, worldOf(before));
      this.#view = whole ? this.world : clampView(this.#view, this.limits);
      this.#paintSoon("picture");
    }
    this.#paintSoon("lines");
  }

  /** CSS px of the plot. */
  resize(size: SizePx): void {
    this.#size = size;
    this.#paintSoon("picture");
    // Nothing moves yet: the first tile is requested at once.
    if (this.#everSettled) this.#turns.moved();
    else this.#settled();
  }

  setView(view: Viewport): void {
    const next = clampView(view, this.limits);
    if (sameView(next, this.#view)) return;
    this.#view = next;
    this.#paintSoon("picture");
    this.#tell(false);
    this.#turns.moved();
  }

  fit(): void {
    this.setView(this.world);
  }

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

  /** The scale does not change. */
  reveal(moment: number): void {
    const x = this.of.axis.xOf(moment);
    const { x0, x1 } = this.#view;
    const slack = (x1 - x0) * 0.05;
    if (x >= x0 + slack && x <= x1 - slack) return;
    const half = (x1 - x0) / 2;
    this.setView({ ...this.#view, x0: x - half, x1: x + half });
  }

  /** World units; sets the cursor as the pointer would. */
  moveTo(x: number, y: number | null): BlockHover | null {
    const { widthPx, heightPx } = this.#size;
    const hover = this.#hoverAt({
      x: xToPx(this.#view, widthPx, x),
      y: y === null ? heightPx / 2 : yToPx(this.#view, heightPx, y),
    });
    this.hovered.value = hover === null ? null : { ...hover, x };
    this.#paintSoon();
    return this.hovered.peek();
  }

  clearCursor(): void {
    this.#hover(null);
  }

  scene(tile = this.#lineTile()): BlockScene {
    return {
      of: this.of,
      view: this.#view,
      size: this.#size,
      tile,
      left: GUTTER.left,
      top: GUTTER.top,
      labels: this.#labels,
    };
  }

  /** The finest at the middle of the view. */
  get tile(): BlockTile | null {
    return this.#tileAt((this.#view.x0 + this.#view.x1) / 2);
  }

  #tileAt(x: number): BlockTile | null {
    return this.of.tiles.findLast((tile) => x >= tile.low && x <= tile.high) ?? null;
  }

  /** All lines are of one tile: the finest that covers the view, else the coarsest. */
  #lineTile(): BlockTile | null {
    const { tiles } = this.of;
    const { x0, x1 } = this.#view;
    return (
      tiles.findLast(({ low, high }) => low <= x0 && high >= x1) ?? tiles[0] ?? null
    );
  }

  #setLayers(surface: RasterSurface): void {
    const before = this.#layers;
    this.#layers = new Map();
    const runs = new Map<string, RunColours>();
    for (const tile of this.of.tiles) {
      const name = before.get(tile) ?? `tile${(this.#numLayers += 1)}`;
      const order = this.#layers.size;
      const colours = this.#colours.get(tile) ?? runColours(tile, this.of);
      this.#colours.set(tile, colours);
      this.#layers.set(tile, name);
      runs.set(name, colours);
      if (before.has(tile)) continue;
      surface.setLayer(name, order, { kind: "runs", runs: tile.runs });
    }
    for (const [tile, name] of before) {
      if (!this.#layers.has(tile)) surface.setLayer(name, 0, null);
    }
    surface.setColours({ background: 0, runs });
    surface.refresh();
  }

  #tell(settled: boolean): void {
    const size = devicePx(this.#size);
    this.events?.onView({ view: this.#view, world: this.world, size }, settled);
  }

  #settled(): void {
    if (this.#size.widthPx < 2) return;
    this.#everSettled = true;
    this.#relabel();
    this.#hoverAgain();
    this.#tell(true);
  }

  #relabel(): void {
    const context = this.over.current?.getContext("2d");
    const { tile } = this;
    if (!context || tile === null) return;
    const widths = { block: widthIn(context, FONT), band: widthIn(context, BOLD) };
    const names = namesOf(tile, this.of, (text, kind) => widths[kind](text));
    const labels = directLabels({ tile, view: this.#view, size: this.#size }, names);
    const own = tileColours(tile, this.of);
    this.#labels = labels.map((label) => ({
      ...label,
      colour: labelColour(label, tile, this.of, own),
    }));
    this.#paintSoon("lines");
  }

  #paintSoon(...layers: readonly ("picture" | "lines" | "layers")[]): void {
    for (const layer of layers) this.#dirty.add(layer);
    this.#turns.paintSoon();
  }

  #paint(): void {
    const surface = this.#surface;
    if (surface === null) return;
    if (this.#dirty.delete("layers")) {
      // In a frame of its own: together with the drawing it would take too long.
      this.#setLayers(surface);
      this.#paintSoon();
      return;
    }
    const isNew = this.#dirty.has("picture");
    const isChanged = isNew || this.#dirty.has("lines");
    this.#dirty.clear();
    if (this.#size.widthPx < 2) return;
    const scene = this.scene();
    if (isNew) surface.show(this.#view, this.#size);
    if (isChanged) {
      this.#on(this.under, (context) => paintAxes(context, scene));
      this.#on(this.over, (context) => paintLines(context, scene));
    }
    const pointed = { hover: this.hovered.peek(), box: this.#box };
    this.#on(this.line, (context) =>
      paintCursor(context, this.scene(this.tile), pointed),
    );
  }

  #on(
    { current: canvas }: RefObject<HTMLCanvasElement | null>,
    paint: (context: CanvasRenderingContext2D) => void,
  ): void {
    const width = this.#size.widthPx + GUTTER.left + GUTTER.right;
    const context = fitted(canvas, width, totalHeight(this.#size, this.of.marks));
    if (context !== null) paint(context);
  }

  #hoverAt(point: PointPx): BlockHover | null {
    const x = pxToX(this.#view, this.#size.widthPx, point.x);
    const tile = this.#tileAt(x);
    if (tile === null) return null;
    const column = tile.columnAt(x);
    if (column < 0) return null;
    const moment = tile.answer.columns.moment[column] ?? -1;
    const hover = { point, x, tile, column, moment, block: null, rest: null };
    const pick = this.#surface?.pick(point) ?? null;
    if (pick === null || this.#layers.get(tile) !== pick.layer) return hover;
    const hit = runPick(tile.runs, pick.id);
    if (hit.kind === "block") {
      return { ...hover, block: tile.factsOf(tile.runs.slot[hit.run] ?? 0) };
    }
    const bytes = tile.runs.rest[hit.band * tile.numColumns + hit.column] ?? 0;
    return { ...hover, rest: { band: hit.band, bytes } };
  }

  /** Not during a gesture: cards and tables would be rendered in each of its frames. */
  #hover(point: PointPx | null): void {
    this.#pointer = point;
    if (point !== null && this.#turns.isMoving) return;
    this.hovered.value = point === null ? null : this.#hoverAt(point);
    this.#paintSoon();
  }

  /** The block under a resting pointer may have changed. */
  #hoverAgain(): void {
    if (this.#pointer !== null) this.#hover(this.#pointer);
  }

  #listen(plot: HTMLElement): () => void {
    return attachGestures(plot, {
      origin: { x: GUTTER.left, y: GUTTER.top },
      size: () => this.#size,
      view: () => this.#view,
      limits: () => this.limits,
      wheelAxes: (point) => (point.x < 0 ? "y" : "x"),
      dragAxes: "both",
      onView: (view) => this.setView(view),
      onFit: () => this.fit(),
      onBox: (box) => {
        this.#box = box && { ...box, y: 0, height: this.#size.heightPx };
        this.#paintSoon();
      },
      onBoxDone: (view, box) => {
        if (box.width >= 2) this.events?.onRange(view.x0, view.x1);
      },
      onHover: (point) =>
        this.#hover(point !== null && this.#inside(point) ? point : null),
      onClick: (point) => {
        plot.focus({ preventScroll: true });
        const hover = this.#inside(point) ? this.#hoverAt(point) : null;
        if (hover !== null) this.events?.onPin(hover);
      },
    });
  }

  #inside({ x, y }: PointPx): boolean {
    const { widthPx, heightPx } = this.#size;
    return x >= 0 && y >= 0 && x < widthPx && y < heightPx;
  }
}

export function worldOf({ axis, topBytes }: BlockPicture): Viewport {
  return { x0: axis.low, x1: axis.high, y0: topBytes, y1: 0 };
}
