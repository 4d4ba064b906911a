/** Subscribes to the window itself, so that a pan renders nothing else. */

import { useEffect, useId, useLayoutEffect, useMemo } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { formatQuantity } from "../../../../model/words/quantity";
import { Icon } from "../../../../widgets/icon/icon";
import { useWidth } from "../../../../widgets/plot/canvas";
import { DrawingFailed } from "../../../../widgets/plot/chart_frame";
import { RULER_PX } from "../paint/lines";
import { toggled } from "../state/params";
import type { Timeline } from "../state/timeline";
import { LANE_PX, type Row } from "./layout";
import { PlotStage, type PlotNow } from "./stage";
import { PlotTip } from "./tip";

export const NAMES_PX = 212;

export interface PlotProps extends Omit<PlotNow, "widthPx"> {
  readonly label: string;
  readonly corner: ComponentChildren;
}

export function Plot(props: PlotProps) {
  const { trace, layout, tiles, heightPx } = props;
  const stage = useMemo(() => new PlotStage({ ...props, widthPx: 0 }), []);
  const widthPx = Math.max(0, useWidth(stage.scroller) - NAMES_PX);
  stage.now = { ...props, widthPx };
  const helpId = useId();
  useLayoutEffect(() => stage.attach(), [stage]);
  useEffect(() => stage.refresh(true));
  const { shown, cursor, mark, scrollTo } = trace;
  const { hover, box } = stage;
  useEffect(() => {
    const stops = [
      shown.subscribe(() => stage.moved()),
      tiles.version.subscribe(() => stage.rebuild()),
      hover.subscribe((hit) => {
        cursor.value = hit?.ns ?? null;
      }),
      ...[box, hover, cursor, mark].map((source) =>
        source.subscribe(() => stage.paintSoon()),
      ),
      scrollTo.subscribe((place) => {
        if (place !== null) stage.bringIntoSight(place);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [stage, tiles.version]);

  const px = (value: number) => `${value}px`;
  return (
    <div
      class="trace-plot"
      ref={stage.root}
      data-loading={tiles.loading ? "" : undefined}
    >
      <div
        class="trace-ruler"
        style={{ height: px(props.corner === null ? 0 : RULER_PX) }}
      >
        <span class="trace-corner" style={{ width: px(NAMES_PX) }}>
          {props.corner}
        </span>
        <canvas ref={stage.ruler} />
      </div>
      <div
        ref={stage.scroller}
        class="trace-scroll"
        style={{ height: px(heightPx) }}
        onScroll={() => stage.scrolled()}
      >
        <div style={{ height: px(Math.max(layout.totalPx, heightPx)) }}>
          <div class="trace-names" style={{ width: px(NAMES_PX) }} aria-label="Tracks">
            {layout.rows.map((row) => (
              <Name key={row.key} trace={trace} row={row} />
            ))}
          </div>
          <div
            ref={stage.target}
            class="trace-canvas"
            style={{
              marginLeft: px(NAMES_PX),
              width: px(widthPx),
              height: px(heightPx),
            }}
            tabIndex={0}
            role="application"
            aria-label={props.label}
            aria-describedby={helpId}
            onKeyDown={(event) => stage.onKey(event)}
          >
            <canvas ref={stage.cells} class="trace-cells" />
            <canvas ref={stage.over} />
            <PlotTip stage={stage} />
          </div>
        </div>
      </div>
      <DrawingFailed drawing="The timeline" failure={stage.failure} />
      <p id={helpId} class="off-screen">
        {trace.answer.summary} The wheel zooms, dragging pans, shift and drag measures a
        range, as M does at its two ends. W and S zoom, A and D pan, arrow up and down
        scroll, arrow left and right go from slice to slice, F shows everything.
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
      title={`${label}\n${hint}`}
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
