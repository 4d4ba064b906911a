/**
 * The timeline itself: names at the left, slices on the raster, what lies over them on a
 * second canvas. It listens to the window by itself, so that a pan renders nothing else.
 */

import type { ComponentChildren } from "preact";
import { useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { TraceResponse } from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import type { RectPx } from "../../../../render/viewport";
import { useWidth } from "../../../../widgets/line_chart/use_size";
import { TraceColours } from "../paint/quads";
import { type Hover, PlotTip } from "./tip";
import type { Mark, Piece } from "../tiles/tile";
import {
  LANE_PX,
  laneTop,
  type Layout,
  type Arrow,
  type NsRange,
  type Place,
  type Row,
} from "./layout";
import type { TraceLoader } from "../tiles/loader";
import { RULER_PX } from "../paint/lines";
import { attachPlotGestures, FLAT_PX, onPlotKey, type PlotInput } from "./input";
import { PlotStage, type Scene } from "./stage";
import type { Sought } from "../state/moves";
import { Icon } from "../../../../widgets/icon/icon";
import { counterValue } from "../words";

export interface PlotProps {
  readonly answer: TraceResponse;
  readonly layout: Layout;
  readonly loader: TraceLoader;
  /** Raised whenever tiles arrive. */
  readonly version: ReadonlySignal<number>;
  /** What is in sight, since the timeline's base. */
  readonly window: Signal<NsRange>;
  readonly world: NsRange;
  readonly find: string;
  readonly selected: Place | null;
  readonly related: readonly Place[];
  readonly arrows: readonly Arrow[];
  readonly range: NsRange | null;
  readonly onSelect: (piece: Piece | null) => void;
  readonly onInstant: (mark: Mark) => void;
  readonly onZoomTo: (window: NsRange) => void;
  readonly onRange: (range: NsRange, tracks: string) => void;
  readonly onFit: () => void;
  readonly onFold: (key: string) => void;
  readonly pins: ReadonlySet<string>;
  readonly onPin: (trackKey: string) => void;
  /** Where the pointer is, over any plot of the page. */
  readonly cursor: Signal<number | null>;
  /** The first of two marks. */
  readonly mark: ReadonlySignal<number | null>;
  /** What stands above the names; null: this plot has no ruler. */
  readonly corner: ComponentChildren;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  readonly label: string;
  readonly summary: string;
  /** Where to scroll to, and so often that it changed. */
  readonly scrollTo: ReadonlySignal<Sought | null>;
}

export function Plot(props: PlotProps) {
  const { layout, loader, window: shown, theme, heightPx } = props;
  const root = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const gestures = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const stage = useRef<PlotStage | null>(null);
  const hover = useSignal<Hover | null>(null);
  const box = useSignal<RectPx | null>(null);
  const failure = useSignal("");
  const spoken = useSignal("");
  const helpId = useId();
  const widthPx = Math.max(0, useWidth(scroller) - NAMES_PX);
  const rulerPx = props.corner === null ? 0 : RULER_PX;
  const totalPx = Math.max(layout.totalPx, heightPx);
  const colours = useMemo(() => new TraceColours(theme), [theme]);
  const scene: Scene = { ...props, colours, widthPx };
  const latest = useRef({ props, widthPx });
  latest.current = { props, widthPx };
  const input = useMemo(
    (): PlotInput => ({
      stage: () => stage.current,
      props: () => latest.current.props,
      size: () => ({
        widthPx: latest.current.widthPx,
        heightPx: latest.current.props.heightPx,
      }),
      scroller: () => scroller.current,
      hover,
      box,
      spoken,
    }),
    [hover, box, spoken],
  );

  useLayoutEffect(() => {
    if (!root.current || !cells.current || !over.current || !ruler.current) return;
    const elements = {
      root: root.current,
      cells: cells.current,
      over: over.current,
      ruler: ruler.current,
    };
    const made = new PlotStage(elements, scene, hover, (message) => {
      failure.value = message;
    });
    stage.current = made;
    return () => {
      made.dispose();
      stage.current = null;
    };
  }, [hover, failure]);
  useEffect(() => stage.current?.show(scene));
  useEffect(() => {
    const stops = [
      shown.subscribe(() => stage.current?.moved()),
      props.version.subscribe(() => {
        stage.current?.rebuild();
        stage.current?.paintSoon();
      }),
      hover.subscribe((at) => {
        props.cursor.value = at?.ns ?? null;
        stage.current?.paintSoon();
      }),
      props.cursor.subscribe(() => stage.current?.paintSoon()),
      props.mark.subscribe(() => stage.current?.paintSoon()),
      props.scrollTo.subscribe((sought) => {
        if (sought !== null) bringIntoSight(sought, input);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [shown, props.version, props.scrollTo, props.cursor, props.mark, input]);
  useEffect(() => {
    if (gestures.current === null) return undefined;
    return attachPlotGestures(gestures.current, input);
  }, [input]);

  return (
    <div class="trace-plot" ref={root} data-loading={loader.loading ? "" : undefined}>
      <div class="trace-ruler" style={{ height: `${rulerPx}px` }}>
        <span class="trace-corner" style={{ width: `${NAMES_PX}px` }}>
          {props.corner}
        </span>
        <canvas ref={ruler} style={{ width: `${widthPx}px`, height: `${rulerPx}px` }} />
      </div>
      <div
        ref={scroller}
        class="trace-scroll"
        style={{ height: `${heightPx}px` }}
        onScroll={(event) => {
          if (stage.current === null) return;
          stage.current.scrollPx = event.currentTarget.scrollTop;
          stage.current.moved();
        }}
      >
        <div class="trace-inner" style={{ height: `${totalPx}px` }}>
          <Names {...props} />
          <div
            ref={gestures}
            class="trace-canvas"
            style={{
              marginLeft: `${NAMES_PX}px`,
              width: `${widthPx}px`,
              height: `${heightPx}px`,
            }}
            tabIndex={0}
            role="application"
            aria-label={props.label}
            aria-describedby={helpId}
            onKeyDown={(event) => onPlotKey(event, input)}
          >
            <canvas
              ref={cells}
              class="trace-cells"
              style={{ width: `${widthPx}px`, height: `${heightPx}px` }}
            />
            <canvas
              ref={over}
              class="trace-over"
              style={{ width: `${widthPx}px`, height: `${heightPx}px` }}
            />
            <SelectionBox box={box} />
            <PlotTip
              hover={hover}
              widthPx={widthPx}
              heightPx={heightPx}
              byteUnit={props.byteUnit}
              theme={theme}
            />
          </div>
        </div>
      </div>
      {failure.value !== "" && (
        <p role="alert" class="trace-failure">
          The timeline could not be drawn: {failure}
        </p>
      )}
      <p id={helpId} class="off-screen">
        {props.summary} The wheel zooms, dragging pans, shift and drag measures a range,
        as M does at its two ends. W and S zoom, A and D pan, arrow up and down scroll,
        arrow left and right go from slice to slice, F shows everything.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

function SelectionBox({ box }: { readonly box: ReadonlySignal<RectPx | null> }) {
  const drawn = box.value;
  if (drawn === null) return null;
  const flat = drawn.height < FLAT_PX;
  return (
    <div
      class="trace-box"
      style={{
        left: `${drawn.x}px`,
        width: `${drawn.width}px`,
        top: flat ? 0 : `${drawn.y}px`,
        height: flat ? "100%" : `${drawn.height}px`,
      }}
    />
  );
}

function bringIntoSight({ trackKey, level }: Sought, input: PlotInput): void {
  const { layout, heightPx } = input.props();
  const top = laneTop(layout, trackKey, level);
  if (top === null) return;
  const seen = input.stage()?.scrollPx ?? 0;
  if (top < seen + 8 || top + LANE_PX > seen + heightPx - 8) {
    input.scroller()?.scrollTo({ top: Math.max(0, top - heightPx / 3) });
  }
}

export const NAMES_PX = 212;

const INDENT_PX = { rank: 4, process: 10, track: 18 } as const;

type NamesProps = Pick<PlotProps, "layout" | "byteUnit" | "onFold" | "pins" | "onPin">;

function Names(props: NamesProps) {
  return (
    <div class="trace-names" style={{ width: `${NAMES_PX}px` }} aria-label="Tracks">
      {props.layout.rows.map((row) => (
        <Name key={row.key} {...props} row={row} />
      ))}
    </div>
  );
}

function Name(props: NamesProps & { readonly row: Row }) {
  const { row, onFold, byteUnit } = props;
  const { kind, key, label, hint, y, heightPx, folded, foldable, trackKey } = row;
  const isPinned = props.pins.has(trackKey);
  return (
    <div
      class={`trace-name is-${kind}`}
      style={{
        top: `${y}px`,
        height: `${heightPx}px`,
        paddingLeft: `${INDENT_PX[kind]}px`,
      }}
      title={hint === "" ? label : `${label}\n${hint}`}
    >
      {foldable ? (
        <button
          type="button"
          class="trace-fold"
          aria-expanded={!folded}
          onClick={() => onFold(key)}
        >
          <Icon name={folded ? "right" : "down"} sizePx={12} />
          <span>{label}</span>
        </button>
      ) : (
        <span class="trace-plain">{label}</span>
      )}
      {row.track?.kind === "counter" && heightPx > 2 * LANE_PX && (
        <span class="trace-most" title="The highest of all its values">
          up to {counterValue(row.track.most, row.track, byteUnit)}
        </span>
      )}
      {kind === "track" && (
        <button
          type="button"
          class="trace-pin"
          aria-label={`Pin ${label}`}
          aria-pressed={isPinned}
          title={isPinned ? "Unpin" : "Pin: keep it at the top"}
          onClick={() => props.onPin(trackKey)}
        >
          <Icon name="pin" sizePx={12} />
        </button>
      )}
    </div>
  );
}
