/**
 * The plot's pictures: slices on the raster, what lies over them and the ruler on canvases
 * of their own. One frame at a time; a pan draws what there is and asks for more.
 */

import type { ReadonlySignal } from "@preact/signals";
import type { TraceResponse } from "../../../../api/types.gen";
import type { Theme } from "../../../../base/tokens";
import type { PointPx } from "../../../../render/gestures";
import { RasterSurface } from "../../../../render/surface";
import { pxToX, type Viewport } from "../../../../render/viewport";
import { type TraceColours, pictureOf, type Picture } from "../paint/quads";
import { counterAt, placeOf, type Hover } from "./tip";
import { markNear, marksOf, type Mark, type Piece } from "../tiles/tile";
import {
  LANE_PX,
  rowsBetween,
  type Layout,
  type Arrow,
  type NsRange,
  type Place,
} from "./layout";
import type { TraceLoader } from "../tiles/loader";
import { paintOverlay, sized } from "../paint/paint";
import { paintRuler, RULER_PX } from "../paint/lines";

const MOST_PIXEL_RATIO = 2;
const SETTLED_MS = 160;
const MARGIN_SHARE = 0.25;

/** What is to be drawn. */
export interface Scene {
  readonly answer: TraceResponse;
  readonly layout: Layout;
  readonly loader: TraceLoader;
  readonly window: ReadonlySignal<NsRange>;
  readonly world: NsRange;
  readonly find: string;
  readonly selected: Place | null;
  readonly related: readonly Place[];
  readonly arrows: readonly Arrow[];
  readonly range: NsRange | null;
  readonly cursor: ReadonlySignal<number | null>;
  readonly mark: ReadonlySignal<number | null>;
  readonly theme: Theme;
  readonly colours: TraceColours;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface StageElements {
  /** Told in `data-` what is drawn and how long it took. */
  readonly root: HTMLElement;
  readonly cells: HTMLCanvasElement;
  readonly over: HTMLCanvasElement;
  readonly ruler: HTMLCanvasElement;
}

function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
}

export class PlotStage {
  scrollPx = 0;
  #scene: Scene;
  readonly #hover: ReadonlySignal<Hover | null>;
  readonly #elements: StageElements;
  readonly #surface: RasterSurface;
  #picture: Picture | null = null;
  /** Of what the picture was made, besides tiles. */
  #madeOf: readonly unknown[] = [];
  #frame = 0;
  #settle = 0;

  /** `onFailure`: "" once it draws again. */
  constructor(
    elements: StageElements,
    scene: Scene,
    hover: ReadonlySignal<Hover | null>,
    onFailure: (message: string) => void,
  ) {
    this.#elements = elements;
    this.#scene = scene;
    this.#hover = hover;
    this.#surface = new RasterSurface(
      elements.cells,
      {
        onPaint: (drawn) => {
          elements.root.dataset["drawMs"] = drawn.drawMs.toFixed(2);
          onFailure("");
        },
        onFailure,
      },
      MARGIN_SHARE,
    );
    this.#setColours();
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    window.clearTimeout(this.#settle);
    this.#surface.dispose();
  }

  get picture(): Picture | null {
    return this.#picture;
  }

  get view(): Viewport {
    const { low, high } = this.#scene.window.peek();
    const y0 = this.scrollPx;
    return { x0: low, x1: high, y0, y1: y0 + this.#scene.heightPx };
  }

  /** Another scene: drawn at the next frame, with what of it is there. */
  show(scene: Scene): void {
    const before = this.#scene;
    this.#scene = scene;
    if (before.colours !== scene.colours) this.#setColours();
    if (
      this.#madeOf.length === 0 ||
      before.colours !== scene.colours ||
      before.layout !== scene.layout ||
      before.find !== scene.find ||
      before.widthPx !== scene.widthPx ||
      before.heightPx !== scene.heightPx
    ) {
      this.look(true);
    }
    this.paintSoon();
  }

  /** What is in sight is another now. */
  moved(): void {
    this.paintSoon();
    this.look(false);
    window.clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => this.look(true), SETTLED_MS);
  }

  paintSoon(): void {
    this.#frame ||= requestAnimationFrame(() => this.#paint());
  }

  look(settled: boolean): void {
    const { x0, x1, y0, y1 } = this.view;
    const { widthPx, loader } = this.#scene;
    if (widthPx < 1) return;
    const device = Math.round(widthPx * pixelRatio());
    loader.look(
      { lowNs: x0, highNs: x1, topPx: y0, bottomPx: y1, widthPx: device },
      settled,
    );
    this.rebuild();
  }

  /** What the loader has for this look, as quads. */
  rebuild(): void {
    const { loader, layout, colours, find, world } = this.#scene;
    const tiles = loader.shown;
    const before = this.#picture;
    const madeOf = [layout, colours, find];
    if (
      before?.tiles.length === tiles.length &&
      tiles.every((tile, i) => tile === before.tiles[i]) &&
      madeOf.every((one, i) => one === this.#madeOf[i])
    ) {
      return;
    }
    this.#madeOf = madeOf;
    const made = pictureOf(tiles, layout, colours, find, world.high);
    this.#picture = made;
    this.#surface.setLayer("slices", 0, { kind: "quads", quads: made.quads });
    const { root } = this.#elements;
    // Until a drawing of it arrives nothing is said of how long one took.
    delete root.dataset["drawMs"];
    root.dataset["pieces"] = made.quads.id.length.toString();
    this.paintSoon();
  }

  pieceAt(at: PointPx): Piece | null {
    const dpr = pixelRatio();
    const found = this.#surface.pick(at.x * dpr, at.y * dpr);
    const drawn = this.#picture;
    if (found === null || drawn === null || found.kind !== "quad") return null;
    const tile = drawn.tiles[drawn.tile[found.id] ?? 0];
    return tile?.piece(drawn.piece[found.id] ?? 0) ?? null;
  }

  markAt(at: PointPx): Mark | null {
    const { layout, widthPx } = this.#scene;
    const { x0, x1, y0 } = this.view;
    const y = y0 + at.y;
    const [row] = rowsBetween(layout, y, y + 0.01);
    if (row?.hasMarks !== true || y >= row.y + LANE_PX) return null;
    const marks = marksOf(this.#picture?.tiles ?? [], row.trackKey);
    return markNear(marks, pxToX(this.view, widthPx, at.x), (x1 - x0) / widthPx);
  }

  hoverAt(at: PointPx): Hover {
    const { layout, widthPx } = this.#scene;
    const now = this.view;
    const y = now.y0 + at.y;
    const ns = pxToX(now, widthPx, at.x);
    const [row] = rowsBetween(layout, y, y + 0.01);
    const counter = counterAt(this.#picture, row ?? null, ns);
    return { at, ns, piece: this.pieceAt(at), mark: this.markAt(at), counter };
  }

  #setColours(): void {
    const { colours } = this.#scene;
    this.#surface.setColours({
      background: colours.background,
      cells: new Map(),
      accent: colours.background,
    });
  }

  #paint(): void {
    this.#frame = 0;
    const { widthPx, heightPx } = this.#scene;
    if (widthPx < 1) return;
    const begin = performance.now();
    const at = this.view;
    const dpr = pixelRatio();
    this.#surface.show(at, {
      widthPx: Math.round(widthPx * dpr),
      heightPx: Math.round(heightPx * dpr),
    });
    this.#paintOver(at, dpr);
    const took = performance.now() - begin;
    this.#elements.root.dataset["paintMs"] = took.toFixed(2);
  }

  #paintOver(at: Viewport, dpr: number): void {
    const { answer, widthPx, heightPx, theme, ...scene } = this.#scene;
    const picture = this.#picture;
    const hover = this.#hover.peek();
    const cursorNs = scene.cursor.peek();
    const context = sized(this.#elements.over, widthPx, heightPx, dpr);
    if (context !== null && picture !== null) {
      paintOverlay(context, {
        view: at,
        widthPx,
        heightPx,
        theme,
        layout: scene.layout,
        picture,
        tiles: picture.tiles,
        steps: answer.steps,
        find: scene.find,
        selected: scene.selected,
        hovered: placeOf(hover),
        related: scene.related,
        arrows: scene.arrows,
        range: scene.range,
        markNs: scene.mark.peek(),
        cursorNs,
      });
    }
    const top = sized(this.#elements.ruler, widthPx, RULER_PX, dpr);
    if (top !== null) paintRuler(top, at, widthPx, answer.steps, theme, cursorNs);
  }
}
