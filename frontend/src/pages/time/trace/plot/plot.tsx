/**
 * The timeline itself: names at the left, slices on the raster, what lies over them on a
 * second canvas. It listens to the window by itself, so that a pan renders nothing else.
 */

import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { formatQuantity } from "../../../../model/words/quantity";
import { Icon } from "../../../../widgets/icon/icon";
import { useWidth } from "../../../../widgets/plot/canvas";
import { RULER_PX } from "../paint/lines";
import { toggled } from "../state/params";
import type { Timeline } from "../state/timeline";
import { summarySentence } from "../words";
import { LANE_PX, type Row } from "./layout";
import { FLAT_PX, PlotStage, type PlotNow } from "./stage";
import { PlotTip } from "./tip";

export const NAMES_PX = 212;

export interface PlotProps extends Omit<PlotNow, "widthPx"> {
  readonly label: string;
  /** What stands above the names; null: this plot has no ruler. */
  readonly corner: ComponentChildren;
}

export function Plot(props: PlotProps) {
  const { trace, layout, tiles, heightPx } = props;
  const root = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const target = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const helpId = useId();
  const widthPx = Math.max(0, useWidth(scroller) - NAMES_PX);
  const latest = useRef<PlotNow>({ ...props, widthPx });
  latest.current = { ...props, widthPx };
  const stage = useMemo(() => new PlotStage(() => latest.current), []);
  useLayoutEffect(() => {
    if (!root.current || !target.current || !scroller.current) return undefined;
    if (!cells.current || !over.current || !ruler.current) return undefined;
    return stage.attach({
      root: root.current,
      target: target.current,
      scroller: scroller.current,
      cells: cells.current,
      over: over.current,
      ruler: ruler.current,
    });
  }, [stage]);
  useEffect(() => stage.refresh(true));
  const { shown, cursor, mark, scrollTo } = trace;
  const { hover, box } = stage;
  useEffect(() => {
    const stops = [
      shown.subscribe(() => stage.moved()),
      tiles.version.subscribe(() => stage.rebuild()),
      hover.subscribe((at) => {
        cursor.value = at?.ns ?? null;
      }),
      ...[hover, cursor, mark].map((one) => one.subscribe(() => stage.paintSoon())),
      scrollTo.subscribe((place) => {
        if (place !== null) stage.bringIntoSight(place);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [stage, tiles.version]);

  const rulerPx = props.corner === null ? 0 : RULER_PX;
  const drawn = box.value;
  const flat = drawn !== null && drawn.height < FLAT_PX;
  return (
    <div
      class="trace-plot"
      ref={root}
      data-loading={tiles.loader.loading ? "" : undefined}
    >
      <div class="trace-ruler" style={{ height: `${rulerPx}px` }}>
        <span class="trace-corner" style={{ width: `${NAMES_PX}px` }}>
          {props.corner}
        </span>
        <canvas ref={ruler} />
      </div>
      <div
        ref={scroller}
        class="trace-scroll"
        style={{ height: `${heightPx}px` }}
        onScroll={() => stage.scrolled()}
      >
        <div style={{ height: `${Math.max(layout.totalPx, heightPx)}px` }}>
          <div
            class="trace-names"
            style={{ width: `${NAMES_PX}px` }}
            aria-label="Tracks"
          >
            {layout.rows.map((row) => (
              <Name key={row.key} trace={trace} row={row} />
            ))}
          </div>
          <div
            ref={target}
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
            onKeyDown={(event) => stage.onKey(event)}
          >
            <canvas ref={cells} class="trace-cells" />
            <canvas ref={over} />
            {drawn !== null && (
              <div
                class="trace-box"
                style={{
                  left: `${drawn.x}px`,
                  width: `${drawn.width}px`,
                  top: flat ? 0 : `${drawn.y}px`,
                  height: flat ? "100%" : `${drawn.height}px`,
                }}
              />
            )}
            <PlotTip stage={stage} />
          </div>
        </div>
      </div>
      {stage.failure.value !== "" && (
        <p role="alert" class="tone-bad">
          The timeline could not be drawn: {stage.failure}
        </p>
      )}
      <p id={helpId} class="off-screen">
        {summarySentence(trace.answer)} The wheel zooms, dragging pans, shift and drag
        measures a range, as M does at its two ends. W and S zoom, A and D pan, arrow up
        and down scroll, arrow left and right go from slice to slice, F shows
        everything.
      </p>
      <p class="off-screen" aria-live="polite">
        {stage.spoken}
      </p>
    </div>
  );
}

const INDENT_PX = { rank: 4, process: 10, track: 18 } as const;

function Name({ trace, row }: { readonly trace: Timeline; readonly row: Row }) {
  const { kind, key, label, hint, y, heightPx, folded, track } = row;
  const { view, state, setState } = trace;
  const isPinned = state.pins.split(",").includes(key);
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
      <button
        type="button"
        class="trace-fold"
        aria-expanded={row.foldable ? !folded : undefined}
        disabled={!row.foldable}
        onClick={() => setState({ closed: toggled(state.closed, key) })}
      >
        {row.foldable && <Icon name={folded ? "right" : "down"} sizePx={12} />}
        <span class="cut">{label}</span>
      </button>
      {track?.kind === "counter" && heightPx > 2 * LANE_PX && (
        <span class="trace-most" title="The highest of all its values">
          up to {formatQuantity(track.most, track.unit ?? "count", view.byteUnit)}
        </span>
      )}
      {kind === "track" && (
        <button
          type="button"
          class="trace-pin"
          aria-label={`Pin ${label}`}
          aria-pressed={isPinned}
          title={isPinned ? "Unpin" : "Pin: keep it at the top"}
          onClick={() => setState({ pins: toggled(state.pins, key) })}
        >
          <Icon name="pin" sizePx={12} />
        </button>
      )}
    </div>
  );
}
