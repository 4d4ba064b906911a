/**
 * uPlot with our shapes: it owns canvas, axes, grid and cursor; lines, bands and marks
 * are painted by us from `shapes.ts`, because ranks do not share one x column and
 * merged rows need their envelope.
 */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Unit, XKind } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import type { Tick } from "../../model/lines/axis";
import { valueTicks, xTicks } from "../../model/lines/axis";
import type { MarkGroup } from "./cursor";
import { markLook } from "./marks";
import type { ChartData, Frame, Shape } from "./shapes";
import { chartShapes, paintShapes, projectX, projectY } from "./shapes";
import type { XRange } from "./types";

export interface PlotState {
  readonly data: ChartData;
  readonly x: XRange;
  readonly y: XRange;
  readonly xKind: XKind;
  readonly unit: Unit;
  readonly byteUnit: ByteUnit;
  readonly logScale: boolean;
  readonly theme: Theme;
  readonly marks: (range: XRange, widthPx: number) => readonly MarkGroup[];
  readonly widthPx: number;
  readonly heightPx: number;
}

const FONT = "11px Roboto, Helvetica, Arial, sans-serif";
/** Room for one tick's text along each axis. */
const X_TICK_PX = 84;
const Y_TICK_PX = 26;
const Y_AXIS_PX = 72;
const X_AXIS_PX = 26;
/** Lower plots have no room to name a limit that is far away. */
const ROOMY_PX = 130;

/** The ticks of both axes for what is shown. */
export function ticksOf(
  state: PlotState,
  frame: Frame,
): { readonly x: readonly Tick[]; readonly y: readonly Tick[] } {
  const { x, y } = frame;
  const mostX = Math.max(2, Math.floor(frame.widthPx / X_TICK_PX));
  const mostY = Math.max(2, Math.floor(frame.heightPx / Y_TICK_PX));
  return {
    x: xTicks(x.low, x.high, mostX, state.xKind),
    y: valueTicks(y.low, y.high, mostY, state.unit, state.byteUnit, state.logScale),
  };
}

export class Plot {
  readonly #uplot: uPlot;
  #state: PlotState;
  #shapes: readonly Shape[] = [];
  #known: {
    readonly state: PlotState;
    readonly widthPx: number;
    readonly heightPx: number;
    readonly ticks: ReturnType<typeof ticksOf>;
  } | null = null;
  #cursor: { readonly x: number | null; readonly topPx: number | null } = {
    x: null,
    topPx: null,
  };

  constructor(root: HTMLElement, state: PlotState) {
    this.#state = state;
    this.#uplot = new uPlot(
      this.#options(),
      [
        [0, 1],
        [0, 1],
      ],
      root,
    );
    this.update(state);
  }

  /** The element over the plot area, where pointers act. */
  get over(): HTMLElement {
    return this.#uplot.over;
  }

  /** The plot area as it stands now, in CSS px. */
  get frame(): Frame {
    const { x, y, logScale } = this.#state;
    // Known to uPlot; asking the element would lay the page out at every frame.
    const { width, height } = this.#uplot.bbox;
    const ratio = uPlot.pxRatio;
    return { x, y, widthPx: width / ratio, heightPx: height / ratio, logScale };
  }

  /** Offset of the plot area inside the chart, in CSS px. */
  get origin(): { readonly left: number; readonly top: number } {
    const { left, top } = this.#uplot.bbox;
    return { left: left / uPlot.pxRatio, top: top / uPlot.pxRatio };
  }

  get state(): PlotState {
    return this.#state;
  }

  update(state: PlotState): void {
    const before = this.#state;
    this.#state = state;
    const plot = this.#uplot;
    plot.batch(() => {
      if (before.widthPx !== state.widthPx || before.heightPx !== state.heightPx) {
        plot.setSize({ width: state.widthPx, height: state.heightPx });
      }
      plot.setScale("x", { min: state.x.low, max: state.x.high });
      const [min, max] = this.#scaled(state.y);
      plot.setScale("y", { min, max });
      // Scales may be the same while data, theme or units changed.
      plot.redraw(false, true);
    });
    // The cursor stays at its x, whose place has moved.
    this.setCursor(this.#cursor.x, this.#cursor.topPx);
  }

  /** Show the cross hair at x (null hides it) and at a height in CSS px. */
  setCursor(x: number | null, topPx: number | null): void {
    this.#cursor = { x, topPx };
    const frame = this.frame;
    const left = x === null ? -10 : projectX(frame)(x);
    const inside = left >= 0 && left <= frame.widthPx;
    this.#uplot.setCursor(
      { left: inside ? left : -10, top: inside ? (topPx ?? -10) : -10 },
      false,
    );
  }

  dispose(): void {
    this.#uplot.destroy();
  }

  /** A range as uPlot knows it: logarithms are taken here, its own axis is linear. */
  #scaled(range: XRange): [number, number] {
    if (!this.#state.logScale) return [range.low, range.high];
    return [Math.log(range.low), Math.log(range.high)];
  }

  /** uPlot asks several times a frame; they are made once. */
  #ticks(): ReturnType<typeof ticksOf> {
    const { widthPx, heightPx } = this.frame;
    const known = this.#known;
    if (
      known?.state !== this.#state ||
      known.widthPx !== widthPx ||
      known.heightPx !== heightPx
    ) {
      const ticks = ticksOf(this.#state, this.frame);
      this.#known = { state: this.#state, widthPx, heightPx, ticks };
      return ticks;
    }
    return known.ticks;
  }

  #options(): uPlot.Options {
    const state = this.#state;
    const colour = (name: "secondary" | "grid") => () =>
      tokens(this.#state.theme)[name];
    const line = { stroke: colour("grid"), width: 1 };
    const axis = {
      stroke: colour("secondary"),
      font: FONT,
      grid: line,
      ticks: { ...line, size: 4 },
      gap: 5,
    };
    const silent = (): null => null;
    return {
      width: state.widthPx,
      height: state.heightPx,
      padding: [10, 14, 0, 0],
      legend: { show: false },
      cursor: {
        points: { show: false },
        drag: { x: false, y: false, setScale: false },
        // Our own gestures move the cursor, also that of the other charts.
        bind: {
          mousedown: silent,
          mouseup: silent,
          click: silent,
          dblclick: silent,
          mousemove: silent,
          mouseleave: silent,
          mouseenter: silent,
        },
      },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      series: [{}, { paths: silent, points: { show: false } }],
      axes: [
        {
          ...axis,
          size: X_AXIS_PX,
          splits: () => this.#ticks().x.map((tick) => tick.value),
          values: () => this.#ticks().x.map((tick) => tick.text),
        },
        {
          ...axis,
          size: Y_AXIS_PX,
          splits: () =>
            this.#ticks().y.map((tick) =>
              this.#state.logScale ? Math.log(tick.value) : tick.value,
            ),
          values: () => this.#ticks().y.map((tick) => tick.text),
        },
      ],
      hooks: {
        draw: [(plot) => this.#paint(plot)],
      },
    };
  }

  #paint(plot: uPlot): void {
    const frame = this.frame;
    if (frame.widthPx < 1) return;
    const { ctx, bbox } = plot;
    const ratio = bbox.width / frame.widthPx;
    this.#shapes = chartShapes(this.#state.data, frame, this.#state.theme);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.translate(bbox.left, bbox.top);
    ctx.scale(ratio, ratio);
    paintMarks(ctx, this.#state, frame);
    paintShapes(ctx, this.#shapes);
    paintLimitName(ctx, this.#state, frame);
    ctx.restore();
  }
}

function paintMarks(
  context: CanvasRenderingContext2D,
  state: PlotState,
  frame: Frame,
): void {
  const toX = projectX(frame);
  for (const group of state.marks(frame.x, frame.widthPx)) {
    const x = Math.round(toX(group.x)) + 0.5;
    const look = markLook(group.kind, state.theme);
    context.strokeStyle = look.colour;
    context.fillStyle = look.colour;
    context.globalAlpha = look.opacity;
    context.lineWidth = look.widthPx;
    context.setLineDash([...look.dash]);
    context.beginPath();
    context.moveTo(x, frame.heightPx - (look.heightPx ?? frame.heightPx));
    context.lineTo(x, frame.heightPx);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (look.glyph === null) continue;
    context.font = "bold 11px Roboto, Helvetica, Arial, sans-serif";
    context.textAlign = x > frame.widthPx - 14 ? "right" : "left";
    context.fillText(look.glyph, x + (x > frame.widthPx - 14 ? -3 : 3), 10);
  }
}

/** The limit by name; where it is above what is shown, at the upper edge. */
function paintLimitName(
  context: CanvasRenderingContext2D,
  state: PlotState,
  frame: Frame,
): void {
  const { limit } = state.data;
  if (limit === null) return;
  const y = projectY(frame)(limit.value);
  const { bad, bg } = tokens(state.theme);
  context.font = FONT;
  context.textAlign = "left";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = bg;
  context.fillStyle = bad;
  const write = (text: string, baseline: number): void => {
    // The halo keeps it readable where lines cross it.
    context.strokeText(text, 6, baseline);
    context.fillText(text, 6, baseline);
  };
  if (y < 0) {
    if (frame.heightPx >= ROOMY_PX) write(`▲ ${limit.label}`, 12);
  } else if (y <= frame.heightPx) write(limit.label, y > 16 ? y - 6 : y + 14);
}
