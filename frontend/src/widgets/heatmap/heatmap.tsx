import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HeatmapResponse } from "../../api/types.gen";
import { counted, formatInteger, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { X_AXES } from "../../model/lines/axis";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { RasterSurface } from "../../render/raster/surface";
import { devicePx } from "../../render/viewport";
import { SIDES, type Picture } from "../plot/axes";
import { Turns } from "../plot/canvas";
import { ChartSwitch, DrawingFailed } from "../plot/chart_frame";
import { Plot, type PlotProps } from "../plot/plot";
import type { Reader, PlotSight } from "../plot/reader";
import { scaleOf, sceneColours, rankTicks, paintMarks, paintPins } from "./paint";
import {
  AROUND_PX,
  defaultsToCapacity,
  domainOf,
  factsOf,
  layerOf,
  needOf,
  TOP_PX,
  worldOf,
  type CellFacts,
  type HeatmapNeed,
} from "./layout";
import { cellReading, cellTable, summaryTable, type Pooling } from "./text";

const AXIS = { ...X_AXES.step, name: "", least: 4 };
const LEAST_RANKS = 2;

export interface HeatmapProps extends Pick<
  PlotProps,
  "cursor" | "label" | "onRange" | "origin" | "page" | "range"
> {
  /** Coarse, of everything; below `detail`. */
  readonly overview: HeatmapResponse;
  /** The answer to the last `onNeed`; null: none yet. */
  readonly detail: HeatmapResponse | null;
  /** Ascending: rows from top to bottom. */
  readonly ranks: Int32Array;
  readonly pinned: readonly number[];
  /** After a gesture, and when the size changes. */
  readonly onNeed: (need: HeatmapNeed) => void;
  /** A click or Enter; where rows or columns are pooled, all that the cell covers. */
  readonly onPick: (pick: CellFacts) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  /** Values are differences from 0; default no. */
  readonly diverging?: boolean;
  /** Of a cell of several ranks; default the highest. */
  readonly pooled?: Pooling;
}

export function Heatmap(props: HeatmapProps) {
  const { overview, detail, ranks, pinned, theme, byteUnit, heightPx } = props;
  const { diverging = false, pooled = "highest" } = props;
  const [byCapacity, setByCapacity] = useState<boolean | null>(null);
  const [part, setPart] = useState({
    ranks,
    rows: [0, 0] as readonly [number, number],
  });
  const [canvas, setCanvas] = useState<HTMLCanvasElement | null>(null);
  const [surface, setSurface] = useState<RasterSurface | null>(null);
  const failure = useSignal("");
  const numPainted = useSignal(0);
  const unit = overview.series?.unit ?? "bytes";
  const scaled = byCapacity ?? defaultsToCapacity(overview);
  const { capacityBytes, valueLow, valueHigh, marks } = overview;
  const domain = useMemo(
    () => domainOf(overview, diverging, scaled),
    // A poll brings a new answer; colours change only with these values.
    [capacityBytes, valueLow, valueHigh, scaled, diverging],
  );
  const world = worldOf(overview, ranks.length);
  const isPart = part.ranks === ranks && part.rows[1] > part.rows[0];
  const rows = isPart ? part.rows : ([world.y0, world.y1] as const);

  useEffect(() => {
    if (canvas === null) return undefined;
    const root = canvas.parentElement?.querySelector<HTMLElement>(".plot-input");
    const onDraw = (): void => {
      // The cell under a resting pointer may have changed.
      numPainted.value += 1;
    };
    const made = new RasterSurface(canvas, { root: root ?? null, failure, onDraw });
    setSurface(made);
    return () => {
      made.dispose();
      setSurface(null);
    };
  }, [canvas]);
  useEffect(
    () => surface?.setLayer("overview", 0, layerOf(overview, ranks)),
    [surface, overview, ranks],
  );
  useEffect(
    () => surface?.setLayer("detail", 1, detail && layerOf(detail, ranks)),
    [surface, detail, ranks],
  );
  useEffect(() => {
    surface?.setColours(sceneColours({ overview, detail }, domain, theme));
    surface?.refresh();
  }, [surface, overview, detail, ranks, domain, theme]);

  const now = useRef({ props, world, seen: null as PlotSight | null, asked: "" });
  Object.assign(now.current, { props, world });
  const turns = useMemo(
    () =>
      new Turns(() => {
        const { seen, props: latest, asked } = now.current;
        if (seen === null || seen.size.widthPx < 2) return;
        const size = devicePx(seen.size);
        const need = needOf(seen.view, now.current.world, latest.ranks, size);
        now.current.asked = JSON.stringify(need);
        if (asked !== now.current.asked) latest.onNeed(need);
      }),
    [],
  );
  useEffect(() => () => turns.stop(), [turns]);
  const onSeen = useCallback(
    (seen: PlotSight): void => {
      now.current.seen = seen;
      surface?.show(seen.view, seen.size);
      turns.moved();
    },
    [surface, ranks],
  );
  const picture = useMemo<Picture>(() => {
    const look = { ranks, marks, pinned, theme };
    return {
      axis: AXIS,
      theme,
      grid: "none",
      yTicks: (view, most, high) => rankTicks(view, most, high, look),
      paint: (pen, seen) => {
        if (pen.image !== undefined && canvas !== null) {
          const cells = canvas.toDataURL("image/png");
          pen.image(cells, 0, 0, seen.size.widthPx, seen.size.heightPx);
        }
        paintMarks(pen, seen, look);
      },
      over: (pen, seen) => paintPins(pen, seen, look),
    };
  }, [canvas, ranks, marks, pinned, theme]);

  function factsAt(point: PointPx): CellFacts | null {
    const pick = surface?.pick(point);
    if (!pick) return null;
    const answer = pick.layer === "detail" ? detail : overview;
    return answer && factsOf(answer, ranks, pick.id);
  }
  const inside = (step: number): number =>
    Math.min(Math.max(Math.round(step), Math.ceil(world.x0)), Math.floor(world.x1));
  const reader: Reader = {
    snap: inside,
    step: (from, count) => {
      const { view, size } = now.current.seen ?? { view: world, size: { widthPx: 1 } };
      const each = Math.max(1, Math.round((view.x1 - view.x0) / size.widthPx));
      return inside(Math.round(from) + count * each);
    },
    read: (_, point) => {
      // Subscribes: read again after each drawing.
      const facts = numPainted.value < 0 ? null : factsAt(point);
      const of = { unit, byteUnit, capacityBytes, diverging, pooled };
      return facts && cellReading(facts, of);
    },
    pick: (_, point) => {
      const facts = factsAt(point);
      if (facts !== null) props.onPick(facts);
    },
  };
  const shown = detail ?? overview;
  const names = scaleOf(domain, theme, (value) =>
    formatQuantity(value, unit, byteUnit),
  );
  const plotPx = heightPx - AROUND_PX;
  return (
    <Plot
      {...props}
      picture={picture}
      reader={reader}
      onSeen={onSeen}
      plotPx={plotPx}
      kind="heatmap"
      drawing="Heatmap"
      subject="the heatmap"
      cross="cells"
      extent={{ low: world.x0, high: world.x1 }}
      y={rows}
      rows={{
        all: [world.y0, world.y1],
        least: Math.min(LEAST_RANKS, world.y1),
        onRows: (next) => setPart({ ranks, rows: next }),
      }}
      topPx={TOP_PX}
      table={() => summaryTable(shown, unit)}
      fileTable={() => cellTable(shown)}
      about={() => ({
        label: props.label,
        unit,
        ranks_per_row: shown.ranksPerRow,
        steps_per_column: shown.stepsPerColumn,
        exact: shown.exact,
      })}
      names={() => names}
      legend="bar"
      bar={
        capacityBytes !== null &&
        !diverging && (
          <ChartSwitch
            hint={
              scaled
                ? "Scale the colours to the range of the data"
                : "Scale the colours from 0 to the capacity"
            }
            onClick={() => setByCapacity(!scaled)}
          >
            {scaled ? "0 to capacity" : "range of the data"}
          </ChartSwitch>
        )
      }
      under={
        <>
          <canvas
            ref={setCanvas}
            class="heatmap-cells"
            style={{
              left: `${SIDES.left}px`,
              top: `${TOP_PX}px`,
              width: `calc(100% - ${SIDES.left + SIDES.right}px)`,
              height: `${plotPx}px`,
            }}
          />
          <DrawingFailed drawing="The heatmap" failure={failure} />
        </>
      }
      help={`${counted(ranks.length, "rank")} over steps ${formatInteger(overview.xLow)} to ${formatInteger(overview.xHigh)}, highest ${formatQuantity(valueHigh, unit, byteUnit)}. Arrow keys read cells, Enter pins the rank, W and S zoom, A and D pan, F shows everything.`}
    />
  );
}
