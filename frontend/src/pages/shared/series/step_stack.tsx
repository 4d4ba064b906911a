/** The time of each step, stacked by part; a click pins the step. The whole run below. */

import { useCallback, useMemo } from "preact/hooks";
import type { StepsResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import { X_AXES } from "../../../model/lines/axis";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { partColour } from "../../../render/palette";
import { xToPx } from "../../../render/viewport";
import type { Pen } from "../../../widgets/export/pen";
import type { XRange } from "../../../widgets/plot/range";
import { Minimap, MINIMAP_PX } from "../../../widgets/minimap/minimap";
import { clipTo } from "../../../widgets/plot/axes";
import type { PlotProps } from "../../../widgets/plot/plot";
import type { PlotSight } from "../../../widgets/plot/reader";
import {
  columnsWithin,
  paintBands,
  Stack as Stacked,
  topOf,
  type StackData,
} from "../../../widgets/stack/stack";
import { lookOf, type ViewProps } from "../view_props";

export const STACK_PX = 260;
const LOOK = { edgedPx: 5, linedPx: 3, apartPx: 6 };
const SILHOUETTE = { edgedPx: Infinity, linedPx: 0, apartPx: Infinity };
const VEIL = 0.7;

const TITLES: Readonly<Record<StepsResponse["of"], string>> = {
  rank: "Step time by part",
  worst: "Step time by part, of the slowest rank of each step",
  median: "Step time by part, of the median rank of each step",
};
const PROFILER_DID = {
  start: "The profiler started in this step",
  stop: "The profiler stopped in this step",
  save: "The profiler saved its trace in this step",
  capture: "A capture was taken in this step",
} as const;

/** Columns have equal length; edges one more. */
export type StackedSteps = Pick<
  StepsResponse,
  | "columnRank"
  | "edges"
  | "exact"
  | "firstStep"
  | "parts"
  | "profilerSteps"
  | "seconds"
  | "shownStep"
  | "stepsPerColumn"
  | "x"
>;

interface StepStackProps extends Pick<
  PlotProps,
  "about" | "bar" | "cursor" | "extent" | "legend" | "onRange" | "page" | "range"
> {
  readonly view: ViewProps;
  readonly answer: StackedSteps;
  readonly label: string;
  readonly pinned: number | null;
  readonly pin: (step: number) => void;
  readonly plotPx: number;
}

export function StepStack(props: StepStackProps) {
  const { view, answer, extent, pinned } = props;
  const { theme } = view;
  const data = useMemo(() => stackOf(answer, theme), [answer, theme]);
  const { low, high } = props.range ?? extent;
  const shares = useMemo(() => sharesOf(data, low, high), [data, low, high]);
  const over = useCallback(
    (pen: Pen, seen: PlotSight) => paintOver(pen, seen, answer, pinned, theme),
    [answer, pinned, theme],
  );
  return (
    <Stacked
      {...lookOf(view)}
      {...props}
      kind="part-stack"
      subject="the steps' time"
      axis={X_AXES[answer.x]}
      data={shares}
      unit="seconds"
      total="Step time"
      exact={(value, total) => formatQuantity((100 * value) / total, "percent")}
      look={LOOK}
      over={over}
      isCut
      columns={[
        { name: "step", values: answer.shownStep },
        { name: "rank", values: answer.columnRank },
      ]}
      reading={(_x, _at, column) => readingOf(answer, column)}
      pick={(x) => {
        const column = data.columnX.indexOf(x);
        const step = answer.shownStep[column];
        if (step !== undefined && (data.totals[column] ?? NaN) > 0) props.pin(step);
      }}
      help="Left and right read steps, Enter pins the step, P goes to the slowest, square brackets to the next slow one, W and S zoom, A and D pan, F shows everything."
    />
  );
}

export function Stack(
  props: Omit<StepStackProps, "about" | "label" | "plotPx"> & {
    readonly answer: StepsResponse;
    readonly whole: StepsResponse | null;
  },
) {
  const { view, answer, whole, extent } = props;
  const { theme } = view;
  const drawMap = useMemo(
    () =>
      whole === null
        ? null
        : (context: CanvasRenderingContext2D, widthPx: number): void =>
            drawSilhouette(context, stackOf(whole, theme), extent, theme, widthPx),
    [whole, extent.low, extent.high, theme],
  );
  return (
    <section class="steps-stack">
      <StepStack
        {...props}
        label={
          answer.of === "rank" && view.run.numRanks > 1
            ? `${TITLES.rank}, rank ${answer.rank ?? "–"}`
            : TITLES[answer.of]
        }
        cursor={view.cursor}
        plotPx={STACK_PX}
        legend={answer.parts.length > 0}
        about={() => ({
          of: answer.of,
          rank: answer.rank,
          x: answer.x,
          steps_per_column: answer.stepsPerColumn,
          exact: answer.exact,
        })}
        page={{ view, group: "Steps" }}
      />
      {drawMap !== null && (
        <Minimap
          extent={extent}
          draw={drawMap}
          range={props.range}
          onRange={props.onRange}
        />
      )}
      <p class="quiet">{answer.grain} Click a step for its ranks.</p>
    </section>
  );
}

/** Without parts the step is one layer. */
export function stackOf(answer: StackedSteps, theme: Theme): StackData {
  const { edges, seconds, parts } = answer;
  const whole = { name: "step", label: "Step time", help: "", seconds };
  const layers = parts.length > 0 ? parts : [whole];
  return {
    edges,
    totals: seconds,
    isCounted: (column) => profiledIn(answer, column) === null,
    columnX: seconds.map((_, c) => ((edges[c] ?? NaN) + (edges[c + 1] ?? NaN)) / 2),
    layers: layers.map(({ seconds: values, ...layer }) => ({
      ...layer,
      values,
      colour: partColour(theme, layer.name),
    })),
  };
}

export function sharesOf(data: StackData, low: number, high: number): StackData {
  const columns = columnsWithin(data, low, high);
  const share = (values: Float64Array): string => {
    let [part, whole] = [0, 0];
    for (const c of columns) {
      const value = values[c] ?? NaN;
      if (Number.isNaN(value)) continue;
      part += value;
      whole += data.totals[c] ?? 0;
    }
    const pct = (100 * part) / whole;
    if (!(whole > 0)) return "–";
    return pct > 0 && pct < 0.1 ? "< 0.1 %" : `${pct.toFixed(1)} %`;
  };
  const layers = data.layers.map((layer) => ({ ...layer, note: share(layer.values) }));
  return { ...data, layers };
}

function readingOf(answer: StackedSteps, column: number) {
  const did = profiledIn(answer, column);
  const quiet = (text: string) => ({ text, class: "quiet" }) as const;
  const rank = answer.columnRank[column] ?? -1;
  const whose = rank < 0 ? "" : ` · rank ${rank}`;
  return {
    title: columnWords(answer, column) + whose,
    notes: [quiet(formatExact(answer.seconds[column] ?? NaN, "seconds"))],
    foot: [
      ...(did === null ? [] : [quiet(`${PROFILER_DID[did]}: not counted in medians.`)]),
      ...(answer.exact
        ? []
        : [quiet("Parts are estimated here; zoom in for the step.")]),
    ],
  };
}

/** `step 1,204`, or which of several steps is shown. */
export function columnWords(answer: StackedSteps, column: number): string {
  const shown = formatInteger(answer.shownStep[column] ?? NaN);
  if (answer.stepsPerColumn <= 1) return `step ${shown}`;
  const first = answer.firstStep[column] ?? NaN;
  const last = first + answer.stepsPerColumn - 1;
  const among = `${formatInteger(first)}–${formatInteger(last)}`;
  return answer.exact
    ? `step ${shown}, the slowest of ${among}`
    : `the slowest of steps ${among}`;
}

/** What the profiler did in a column's step; null: nothing. */
export function profiledIn(
  { shownStep, profilerSteps }: StackedSteps,
  column: number,
): StackedSteps["profilerSteps"][number]["what"] | null {
  const step = shownStep[column] ?? NaN;
  const profilerStep = profilerSteps.find(
    ({ first, last }) => first <= step && step <= last,
  );
  return profilerStep?.what ?? null;
}

/** -1: no column shows it. */
export function columnOfStep(answer: StackedSteps, step: number): number {
  const column = answer.firstStep.findLastIndex((first) => first <= step);
  const first = answer.firstStep[column] ?? NaN;
  return step < first + answer.stepsPerColumn ? column : -1;
}

/**
 * Steps with the profiler's own time are veiled: that is not training. A bar that is
 * cut has a mark above it.
 */
function paintOver(
  pen: Pen,
  { view, size, left, top }: PlotSight,
  answer: StackedSteps,
  pinned: number | null,
  theme: Theme,
): void {
  const { bg, bad, text } = tokens(theme);
  const ends = (column: number): readonly [number, number] => {
    const [from, to] = [column, column + 1].map(
      (edge) => left + xToPx(view, size.widthPx, answer.edges[edge] ?? NaN),
    );
    return [from ?? NaN, to ?? NaN];
  };
  const columns = columnsWithin(answer, view.x0, view.x1);
  clipTo(pen, left, top, size.widthPx, size.heightPx);
  pen.fillStyle = bg;
  pen.globalAlpha = VEIL;
  for (const column of columns) {
    if (profiledIn(answer, column) === null) continue;
    const [from, to] = ends(column);
    pen.fillRect(from, top, to - from, size.heightPx);
  }
  pen.restore();
  pen.fillStyle = bad;
  for (const column of columns) {
    if (!((answer.seconds[column] ?? NaN) > view.y0)) continue;
    const [from, to] = ends(column);
    const x = (from + to) / 2;
    pen.beginPath();
    pen.moveTo(x - 4, top - 2);
    pen.lineTo(x + 4, top - 2);
    pen.lineTo(x, top - 9);
    pen.fill();
  }
  const chosen = pinned === null ? -1 : columnOfStep(answer, pinned);
  if (!columns.includes(chosen)) return;
  const [from, to] = ends(chosen);
  const start = Math.max(left, from);
  const width = Math.max(3, Math.min(left + size.widthPx, to) - start);
  pen.strokeStyle = text;
  pen.lineWidth = 1.5;
  pen.strokeRect(start - 0.5, top - 1, width, size.heightPx + 1);
}

function drawSilhouette(
  context: CanvasRenderingContext2D,
  data: StackData,
  { low, high }: XRange,
  theme: Theme,
  widthPx: number,
): void {
  const top = topOf(data, low, high, true).value;
  const view = { x0: low, x1: high, y0: top, y1: 0 };
  const layers = [{ values: data.totals, colour: tokens(theme).secondary }];
  const size = { widthPx, heightPx: MINIMAP_PX };
  context.globalAlpha = 0.55;
  paintBands(context, { edges: data.edges, layers }, SILHOUETTE, view, size, theme);
  context.globalAlpha = 1;
}
