/** The rank x step heatmap: which rank, and when. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatInteger } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { figureTitle } from "../../model/words/origin";
import { formatQuantity } from "../../model/words/quantity";
import { viewAfterKey, zoomStep } from "../../render/gestures";
import { useWidth } from "../line_chart/use_size";
import { figureOf } from "../export/figure";
import type { ExportSource, Figure } from "../export/source";
import { ChartFrame } from "../plot/chart_frame";
import { ColourBar } from "./colour_bar";
import { HeatmapController, type Hovered } from "./controller";
import { cellTable, summaryTable } from "./data_table";
import "./heatmap.css";
import {
  defaultsToCapacity,
  divergingDomain,
  domainOf,
  type CellFacts,
  type Domain,
} from "./layout";
import { fullSize, GUTTER, paintOverlay, paintScale } from "./paint";
import { CellTip, cellWords, type CellWords } from "./tooltip";
import type { HeatmapProps } from "./types";

export function Heatmap(props: HeatmapProps) {
  const { overview, detail, ranks, pinned, range, theme, byteUnit, cursor } = props;
  const [byCapacity, setByCapacity] = useState<boolean | null>(null);
  const [asTable, setAsTable] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<HeatmapController | null>(null);
  const spoken = useSignal("");
  const widthPx = useWidth(root);
  const unit = overview.series?.unit ?? "bytes";
  const diverging = props.diverging === true;
  const scaled = byCapacity ?? defaultsToCapacity(overview);
  const { capacityBytes, valueLow, valueHigh } = overview;
  const domain = useMemo(
    () => (diverging ? divergingDomain(overview) : domainOf(overview, scaled)),
    // A poll brings a new answer; colours change only when their ends do.
    [capacityBytes, valueLow, valueHigh, scaled, diverging],
  );
  const inputs = { overview, detail, ranks, pinned, range, theme, domain };
  const latest = useRef({ props, inputs });
  latest.current = { props, inputs };

  useEffect(() => {
    if (plot.current === null || cells.current === null || over.current === null)
      return;
    const made = new HeatmapController(
      plot.current,
      cells.current,
      over.current,
      cursor,
      latest.current.inputs,
      () => latest.current.props,
    );
    setController(made);
    return () => {
      made.dispose();
      setController(null);
    };
  }, [cursor, asTable]);
  useEffect(() => controller?.update(inputs));
  useEffect(() => {
    if (widthPx > 0) controller?.resize(widthPx, props.heightPx);
  }, [controller, widthPx, props.heightPx]);

  function wordsOf(facts: CellFacts): CellWords {
    return cellWords(facts, unit, byteUnit, capacityBytes, diverging, props.pooled);
  }

  function announce(facts: CellFacts | null): void {
    if (facts === null) return;
    const words = wordsOf(facts);
    spoken.value = `${words.rank}, ${words.steps}, ${words.value}`;
  }

  function onKey(event: KeyboardEvent): boolean {
    if (controller === null) return false;
    const far = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") announce(controller.moveCursor(far, 0));
    else if (event.key === "ArrowLeft") announce(controller.moveCursor(-far, 0));
    else if (event.key === "ArrowDown") announce(controller.moveCursor(0, far));
    else if (event.key === "ArrowUp") announce(controller.moveCursor(0, -far));
    else if (event.key === "Enter") controller.pickCursor();
    else if (event.key === "Escape") controller.clearCursor();
    else if (event.key === "f" || event.key === "F") controller.fit();
    else {
      const next = viewAfterKey(event.key, controller.view, controller.limits, "both");
      if (next === null) return false;
      controller.setView(next);
    }
    return true;
  }

  const shown = detail ?? overview;
  const source: ExportSource = {
    origin: props.origin,
    name: props.label,
    table: () => cellTable(shown),
    about: () => ({
      label: props.label,
      unit,
      ranks_per_row: shown.ranksPerRow,
      steps_per_column: shown.stepsPerColumn,
      exact: shown.exact,
    }),
    figure:
      controller === null
        ? null
        : () =>
            pictureOf(controller, {
              title: figureTitle(props.label, props.origin),
              theme,
              domain,
              ends: [
                formatQuantity(domain.low, unit, byteUnit),
                formatQuantity(domain.high, unit, byteUnit),
              ],
            }),
  };

  if (props.exporter !== undefined) props.exporter.current = source;

  return (
    <ChartFrame
      kind="heatmap"
      what="Heatmap"
      label={props.label}
      subject="the heatmap"
      source={source}
      zoom={(sign) => {
        if (controller === null) return;
        controller.setView(zoomStep(controller.view, controller.limits, sign, "both"));
      }}
      fit={() => controller?.fit()}
      table={() => summaryTable(shown, unit)}
      asTable={asTable}
      onAsTable={setAsTable}
      heightPx={props.heightPx}
      onKey={onKey}
      box={root}
      bar={
        <>
          <ColourBar domain={domain} unit={unit} byteUnit={byteUnit} theme={theme} />
          {capacityBytes !== null && !diverging && (
            <button
              type="button"
              class="heatmap-scale"
              aria-pressed={scaled}
              title={
                scaled
                  ? "Spread the colours over the values there are"
                  : "Let the colours mean shares of the capacity"
              }
              onClick={() => setByCapacity(!scaled)}
            >
              {scaled ? "0 to capacity" : "range of the data"}
            </button>
          )}
        </>
      }
      plot={
        <>
          <canvas
            ref={cells}
            class="heatmap-cells"
            style={insetStyle(props.heightPx)}
          />
          <canvas ref={over} />
          <div ref={plot} class="plot-input heatmap-input" style={{ inset: 0 }} />
          {controller !== null && <HoverTip controller={controller} words={wordsOf} />}
        </>
      }
      help={`${formatInteger(ranks.length)} ranks over steps ${formatInteger(overview.xLow)} to ${formatInteger(overview.xHigh)}, highest ${formatQuantity(valueHigh, unit, byteUnit)}. Arrow keys read cells, Enter pins the rank, W and S zoom, A and D pan, F shows everything.`}
      spoken={spoken}
    />
  );
}

const SCALE_ROW_PX = 16;

function pictureOf(
  controller: HeatmapController,
  of: {
    readonly title: string;
    readonly theme: Theme;
    readonly domain: Domain;
    /** Texts at the two ends of the colour scale. */
    readonly ends: readonly [low: string, high: string];
  },
): Figure {
  const state = controller.still();
  const { widthPx, heightPx } = state.size;
  const full = fullSize(state.size);
  return figureOf({
    ...{ title: of.title, theme: of.theme, legend: [] },
    axisName: "ranks by step",
    widthPx: full.widthPx,
    heightPx: SCALE_ROW_PX + full.heightPx,
    paint: (pen) => {
      paintScale(pen, of.domain, of.theme, of.ends);
      pen.translate(0, SCALE_ROW_PX);
      const cells = controller.canvas.toDataURL("image/png");
      pen.image(cells, GUTTER.left, GUTTER.top, widthPx, heightPx);
      paintOverlay(pen, state);
    },
  });
}

/** The plot area inside the gutters that axes need. */
function insetStyle(heightPx: number) {
  return {
    left: `${GUTTER.left}px`,
    top: `${GUTTER.top}px`,
    width: `calc(100% - ${GUTTER.left + GUTTER.right}px)`,
    height: `${heightPx - GUTTER.top - GUTTER.bottom}px`,
  };
}

function HoverTip({
  controller,
  words,
}: {
  readonly controller: HeatmapController;
  readonly words: (facts: CellFacts) => CellWords;
}) {
  const hovered: Hovered | null = controller.hovered.value;
  const failure = controller.failure.value;
  if (failure !== null) {
    return (
      <p class="heatmap-failure" role="alert">
        The heatmap could not be drawn: {failure}. Reload the page.
      </p>
    );
  }
  if (hovered === null) return null;
  const { at, facts } = hovered;
  return (
    <CellTip
      words={words(facts)}
      at={{
        leftPx: GUTTER.left + at.x,
        topPx: GUTTER.top + at.y,
        flip: at.x > controller.size.widthPx / 2,
        above: at.y > controller.size.heightPx / 2,
      }}
    />
  );
}
