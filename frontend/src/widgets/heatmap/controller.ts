/**
 * The heatmap's moving parts: two canvases, the raster surface and the gestures. It
 * holds the viewport; the component above holds what the user chose.
 */

import { signal, type Signal } from "@preact/signals";
import type { HeatmapResponse } from "../../api/types.gen";
import { attachGestures, type Axes, type PointPx } from "../../render/gestures";
import { RasterSurface } from "../../render/surface";
import type { Limits, RectPx, SizePx, Viewport } from "../../render/viewport";
import { clampView, pxToX, pxToY, sameView } from "../../render/viewport";
import { devicePx, fitted, pixelRatio } from "../plot/canvas";
import { sceneColours } from "./colours";
import type { CellFacts, Domain } from "./layout";
import { factsOf, layerOf, limitsOf, needOf, rangeOf, worldOf } from "./layout";
import { fullSize, GUTTER, paintOverlay, plotSize, type OverlayState } from "./paint";
import type { CellPick, HeatmapNeed, HeatmapProps, StepRange } from "./types";

/** A gesture has settled once nothing moved for this long. */
const SETTLE_MS = 140;

export interface HeatmapEvents {
  readonly onRange: (range: StepRange | null) => void;
  readonly onNeed: (need: HeatmapNeed) => void;
  readonly onPick: (pick: CellPick) => void;
}

/** What the tooltip shows. */
export interface Hovered {
  readonly at: PointPx;
  readonly facts: CellFacts;
}

type Inputs = Pick<
  HeatmapProps,
  "overview" | "detail" | "ranks" | "pinned" | "range" | "theme"
> & { readonly domain: Domain };

export class HeatmapController {
  readonly hovered = signal<Hovered | null>(null);
  /** null while drawing works. */
  readonly failure = signal<string | null>(null);
  readonly #surface: RasterSurface;
  readonly #plot: HTMLElement;
  readonly #cells: HTMLCanvasElement;
  readonly #over: HTMLCanvasElement;
  readonly #events: () => HeatmapEvents;
  readonly #cursor: Signal<number | null>;
  readonly #stop: (() => void)[] = [];
  #inputs: Inputs;
  #view: Viewport;
  #size: SizePx = { widthPx: 1, heightPx: 1 };
  #place: number | null = null;
  #pointer: PointPx | null = null;
  #box: RectPx | null = null;
  #settle: number | null = null;
  #frame: number | null = null;
  #asked = "";

  constructor(
    plot: HTMLElement,
    cells: HTMLCanvasElement,
    over: HTMLCanvasElement,
    cursor: Signal<number | null>,
    inputs: Inputs,
    events: () => HeatmapEvents,
  ) {
    this.#plot = plot;
    this.#cells = cells;
    this.#over = over;
    this.#cursor = cursor;
    this.#inputs = inputs;
    this.#events = events;
    this.#view = this.world;
    this.#surface = new RasterSurface(cells, {
      onPaint: (frame) => {
        this.failure.value = null;
        // What lies under a resting pointer may have changed, or become sharper.
        if (this.#pointer !== null) this.#hover(this.#pointer);
        plot.dataset["drawMs"] = frame.drawMs.toFixed(1);
      },
      onFailure: (message) => {
        this.failure.value = message;
      },
    });
    const painted = cursor.subscribe(() => this.#later());
    this.#stop.push(this.#listen(), painted);
    this.#adopt(inputs, null);
  }

  get world(): Viewport {
    return worldOf(this.#inputs.overview, this.#inputs.ranks.length);
  }

  get limits(): Limits {
    return limitsOf(this.world);
  }

  get view(): Viewport {
    return this.#view;
  }

  get size(): SizePx {
    return this.#size;
  }

  /** The cells as drawn, for pictures. */
  get canvas(): HTMLCanvasElement {
    return this.#cells;
  }

  /** Take what was rendered last; only what changed costs anything. */
  update(inputs: Inputs): void {
    const before = this.#inputs;
    this.#inputs = inputs;
    this.#adopt(inputs, before);
  }

  resize(widthPx: number, heightPx: number): void {
    this.#size = plotSize(widthPx, heightPx);
    this.#show();
  }

  /** Show a viewport and tell the owner which steps it holds. */
  setView(view: Viewport): void {
    const next = clampView(view, this.limits);
    if (sameView(next, this.#view)) return;
    this.#view = next;
    this.#show();
    this.#events().onRange(rangeOf(next, this.world));
  }

  fit(): void {
    this.setView(this.world);
  }

  /** Move the keyboard's cursor; returns what stands there. */
  moveCursor(steps: number, places: number): CellFacts | null {
    const { x0, x1, y0, y1 } = this.#view;
    const perColumn = Math.max(1, Math.round((x1 - x0) / this.#size.widthPx));
    const perRow = Math.max(1, Math.round((y1 - y0) / this.#size.heightPx));
    const step = this.#cursor.peek() ?? Math.round((x0 + x1) / 2);
    const place = this.#place ?? Math.floor((y0 + y1) / 2);
    const { world } = this;
    const nextStep = step + steps * perColumn;
    const nextPlace = place + places * perRow;
    this.#place = Math.min(Math.max(nextPlace, 0), world.y1 - 1);
    this.#cursor.value = Math.min(
      Math.max(nextStep, Math.ceil(world.x0)),
      Math.floor(world.x1),
    );
    this.#later();
    const x = ((this.#cursor.peek() ?? 0) - x0) / (x1 - x0);
    const y = (this.#place + 0.5 - y0) / (y1 - y0);
    const at = { x: x * this.#size.widthPx, y: y * this.#size.heightPx };
    const facts = this.#factsAt(at);
    this.hovered.value = facts === null ? null : { at, facts };
    return facts;
  }

  /** Pick the cell under the cursor, as a click would. */
  pickCursor(): void {
    const hovered = this.hovered.peek();
    if (hovered !== null) this.#events().onPick(hovered.facts);
  }

  clearCursor(): void {
    this.#cursor.value = null;
    this.#hover(null);
  }

  dispose(): void {
    for (const stop of this.#stop) stop();
    if (this.#settle !== null) window.clearTimeout(this.#settle);
    if (this.#frame !== null) window.cancelAnimationFrame(this.#frame);
    this.#surface.dispose();
  }

  #answers(): ReadonlyMap<string, HeatmapResponse> {
    const answers = new Map([["overview", this.#inputs.overview]]);
    if (this.#inputs.detail !== null) answers.set("detail", this.#inputs.detail);
    return answers;
  }

  #adopt(next: Inputs, before: Inputs | null): void {
    const { overview, detail, ranks, domain, theme, range } = next;
    const moved = before?.ranks !== ranks;
    const newOverview = moved || before.overview !== overview;
    const newDetail = moved || before.detail !== detail;
    if (newOverview) this.#surface.setLayer("overview", 0, layerOf(overview, ranks));
    if (newDetail) {
      const layer = detail === null ? null : layerOf(detail, ranks);
      this.#surface.setLayer("detail", 1, layer);
    }
    const recoloured = before?.domain !== domain || before.theme !== theme;
    if (newOverview || newDetail || recoloured) {
      this.#surface.setColours(sceneColours(this.#answers(), domain, theme));
      this.#surface.refresh();
    }
    this.#follow(range, before === null || moved);
    this.#later();
  }

  /** Take over the owner's step range; rows stay, unless the ranks changed. */
  #follow(range: StepRange | null, resetRows: boolean): void {
    const { world } = this;
    const rows = resetRows ? world : this.#view;
    const whole = range === null;
    const next = clampView(
      {
        x0: whole ? world.x0 : range.low,
        x1: whole ? world.x1 : range.high,
        y0: rows.y0,
        y1: rows.y1,
      },
      this.limits,
    );
    if (sameView(next, this.#view)) return;
    this.#view = next;
    this.#show();
  }

  #show(): void {
    this.#surface.show(this.#view, devicePx(this.#size));
    this.#later();
    if (this.#settle !== null) window.clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => this.#settled(), SETTLE_MS);
  }

  #settled(): void {
    if (this.#size.widthPx < 2) return;
    const { ranks } = this.#inputs;
    const need = needOf(this.#view, this.world, ranks, devicePx(this.#size));
    const key = JSON.stringify(need);
    if (key === this.#asked) return;
    this.#asked = key;
    this.#events().onNeed(need);
  }

  /** Axes and cross hair are painted once a frame, however often they change. */
  #later(): void {
    this.#frame ??= window.requestAnimationFrame(() => {
      this.#frame = null;
      this.#paintOverlay();
    });
  }

  #paintOverlay(): void {
    const { widthPx, heightPx } = fullSize(this.#size);
    const context = fitted(this.#over, widthPx, heightPx);
    if (context !== null) paintOverlay(context, this.#scene());
  }

  /** What lies over the cells at rest, for pictures. */
  still(): OverlayState {
    return { ...this.#scene(), cursorStep: null, cursorPlace: null, box: null };
  }

  #scene(): OverlayState {
    const { ranks, pinned, theme, overview } = this.#inputs;
    return {
      view: this.#view,
      size: this.#size,
      ranks,
      marks: overview.marks,
      pinned,
      theme,
      cursorStep: this.#cursor.peek(),
      cursorPlace: this.#place,
      box: this.#box,
    };
  }

  #factsAt(at: PointPx): CellFacts | null {
    const ratio = pixelRatio();
    const pick = this.#surface.pick(at.x * ratio, at.y * ratio);
    if (pick?.kind !== "cell") return null;
    const answer = this.#answers().get(pick.layer);
    return answer === undefined ? null : factsOf(answer, this.#inputs.ranks, pick);
  }

  #hover(at: PointPx | null): void {
    this.#pointer = at;
    const facts = at === null ? null : this.#factsAt(at);
    this.hovered.value = at === null || facts === null ? null : { at, facts };
    if (at === null) this.#place = null;
    else {
      const place = Math.floor(pxToY(this.#view, this.#size.heightPx, at.y));
      this.#place = Math.min(Math.max(place, 0), this.world.y1 - 1);
    }
    this.#later();
  }

  #listen(): () => void {
    return attachGestures(this.#plot, {
      origin: { x: GUTTER.left, y: GUTTER.top },
      size: () => this.#size,
      view: () => this.#view,
      limits: () => this.limits,
      wheelAxes: (at) => this.#axesAt(at),
      dragAxes: "both",
      onView: (view) => this.setView(view),
      onFit: () => this.fit(),
      onBox: (box) => {
        this.#box = box;
        this.#later();
      },
      onBoxDone: (view) => this.setView(view),
      onHover: (point) => {
        const at = point !== null && this.#inside(point) ? point : null;
        const x = at === null ? null : pxToX(this.#view, this.#size.widthPx, at.x);
        this.#cursor.value = x === null ? null : Math.round(x);
        this.#hover(at);
      },
      onClick: (at) => {
        const facts = this.#factsAt(at);
        if (facts !== null) this.#events().onPick(facts);
      },
    });
  }

  #inside({ x, y }: PointPx): boolean {
    const { widthPx, heightPx } = this.#size;
    return x >= 0 && y >= 0 && x < widthPx && y < heightPx;
  }

  /** The wheel over the rank axis zooms ranks, over the step axis steps. */
  #axesAt(at: PointPx): Axes {
    if (at.x < 0) return "y";
    return at.y > this.#size.heightPx ? "x" : "both";
  }
}
