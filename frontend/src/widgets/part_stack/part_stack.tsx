/**
 * The time of steps, stacked by part: the pointer reads every value, a click pins the
 * step. The owner holds the range and the cursor, so the charts below move with it.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import { X_LABEL } from "../../model/lines/axis";
import { localPeaks, nextPeak } from "../../model/lines/peaks";
import { formatQuantity } from "../../model/words/quantity";
import { partHelp, partLabel } from "../../model/words/step_part";
import { partColours } from "../../render/palette";
import { pxToX, xToPx, type SizePx, type Viewport } from "../../render/viewport";
import { paintPointer } from "../plot/axes";
import { highestColumn } from "../plot/bands";
import { Legend } from "../plot/legend";
import { NOTHING_SEEN, PlotFrame, type PlotPainter, type Seen } from "../plot/frame";
import { stackTable } from "./data_table";
import { centreOf, columnAt, layersOf, shareOf, topOf } from "./layout";
import { GUTTER, paintStack, type StackPaint } from "./paint";
import { columnWords, PartTip } from "./tooltip";
import type { PartStackProps } from "./types";

/** The least that can be zoomed into: two steps, or 20 ms. */
const LEAST_STEPS = 2;
const LEAST_MS = 20;

interface Look extends Omit<StackPaint, "view" | "size"> {
  readonly cursor: ReadonlySignal<number | null>;
}

const PAINTER: PlotPainter<Look> = {
  frame: (pen, look, seen) => paintStack(pen, { ...look, ...seen }),
  over: (pen, { cursor, theme }, { view, size }, box) => {
    const x = cursor.value ?? NaN;
    const { left, top } = GUTTER;
    const at = left + xToPx(view, size.widthPx, x);
    const bottom = top + size.heightPx;
    const line = x >= view.x0 && x <= view.x1 ? { x: at, top, bottom } : null;
    paintPointer(pen, theme, line, box);
  },
};

export function PartStack(props: PartStackProps) {
  const { answer, theme, plotPx, pinned, cursor } = props;
  const [whole, setWhole] = useState(false);
  const inside = useSignal(false);
  const spoken = useSignal("");
  const seen = useRef<Seen>(NOTHING_SEEN);
  const layers = useMemo(() => layersOf(answer), [answer]);
  const colours = useMemo(
    () =>
      partColours(
        theme,
        layers.map(({ name }) => name),
      ),
    [theme, layers],
  );
  const low = props.range?.low ?? props.extent.low;
  const high = props.range?.high ?? props.extent.high;
  const top = useMemo(
    () => topOf(answer, low, high, whole),
    [answer, low, high, whole],
  );
  const look = useMemo<Look>(
    () => ({ answer, theme, colours, pinned, cursor }),
    [answer, theme, colours, pinned, cursor],
  );

  function columnUnder(px: number): number {
    const { view, size } = seen.current;
    return columnAt(answer, pxToX(view, size.widthPx, px));
  }
  function pick(column: number): void {
    const step = answer.shownStep[column];
    if (step !== undefined && (answer.columnRank[column] ?? -1) >= 0) {
      props.onPick(step);
    }
  }

  /** Puts the cursor on a column, as the pointer would, and says what stands there. */
  function moveTo(column: number): void {
    if (column < 0 || column >= answer.seconds.length) return;
    cursor.value = centreOf(answer, column);
    inside.value = true;
    const words = [
      columnWords(answer, column),
      `rank ${answer.columnRank[column] ?? "–"}`,
      formatQuantity(answer.seconds[column] ?? NaN, "seconds"),
      ...answer.parts.map(
        ({ name, seconds }) =>
          `${partLabel(name)} ${formatQuantity(seconds[column] ?? NaN, "seconds")}`,
      ),
    ];
    spoken.value = words.join(", ");
  }
  function columnNow(): number {
    const x = cursor.peek();
    const { view } = seen.current;
    return columnAt(answer, x ?? (view.x0 + view.x1) / 2);
  }
  function toNextSlow(side: -1 | 1): boolean {
    const { view } = seen.current;
    const centres = answer.seconds.map((_, c) => centreOf(answer, c));
    const from = cursor.peek() ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    const next = nextPeak(localPeaks({ x: centres, y: answer.seconds }), from, side);
    if (next !== null) moveTo(columnAt(answer, next));
    return next !== null;
  }
  function toSlowest(): void {
    moveTo(highestColumn(answer.seconds));
  }
  if (props.handle !== undefined) props.handle.current = { toSlowest, toNextSlow };

  function onKey(event: KeyboardEvent): boolean {
    const far = event.shiftKey ? 10 : 1;
    const last = answer.seconds.length - 1;
    const move = (by: number): void =>
      moveTo(Math.min(Math.max(columnNow() + by, 0), last));
    if (event.key === "ArrowRight") move(far);
    else if (event.key === "ArrowLeft") move(-far);
    else if (event.key === "p" || event.key === "P") toSlowest();
    else if (event.key === "[") toNextSlow(-1);
    else if (event.key === "]") toNextSlow(1);
    else if (event.key === "Enter") pick(columnNow());
    else if (event.key === "Escape" && cursor.peek() !== null) {
      cursor.value = null;
      inside.value = false;
    } else return false;
    return true;
  }

  const names = layers.map(({ name }, i) => ({
    label: partLabel(name),
    colour: colours[i] ?? "transparent",
    help: partHelp(name),
  }));
  return (
    <PlotFrame
      kind="part-stack"
      label={props.label}
      axisName={X_LABEL[answer.x]}
      subject="the steps' time"
      look={look}
      painter={PAINTER}
      extent={props.extent}
      range={props.range}
      onRange={props.onRange}
      leastX={answer.x === "step" ? LEAST_STEPS : LEAST_MS}
      y0={top.value}
      gutter={GUTTER}
      plotPx={plotPx}
      totalPx={GUTTER.top + plotPx + GUTTER.bottom}
      seen={seen}
      onHover={(at) => {
        const column = at === null ? -1 : columnUnder(at.x);
        inside.value = column >= 0;
        cursor.value = column < 0 ? null : centreOf(answer, column);
      }}
      onClick={(at) => pick(columnUnder(at.x))}
      onKey={onKey}
      table={(view) => stackTable(answer, view)}
      origin={props.origin}
      about={() => ({
        ...props.about,
        x: answer.x,
        steps_per_column: answer.stepsPerColumn,
        exact: answer.exact,
      })}
      names={names}
      exporter={props.exporter}
      bar={
        <>
          {props.controls}
          {(top.cut || whole) && (
            <button
              type="button"
              class="heatmap-scale"
              aria-pressed={whole}
              title="Some steps are far higher than the others; they are marked at the upper edge"
              onClick={() => setWhole(!whole)}
            >
              {whole ? "cut the highest" : "show the highest whole"}
            </button>
          )}
        </>
      }
      tip={({ view, size }) => (
        <Hovering
          inside={inside}
          cursor={cursor}
          props={props}
          view={view}
          size={size}
          colours={colours}
        />
      )}
      legend={
        answer.parts.length > 0 && (
          <Legend
            items={names.map((one, i) => {
              const layer = layers[i];
              const share =
                layer === undefined ? NaN : shareOf(answer, layer, low, high);
              return { ...one, note: shareWords(share) };
            })}
          />
        )
      }
      help="Left and right read steps, Enter pins the step, P goes to the slowest, square brackets to the next slow one, W and S zoom, A and D pan, F shows everything."
      spoken={spoken}
    />
  );
}

function shareWords(share: number): string {
  if (Number.isNaN(share)) return "–";
  const pct = 100 * share;
  return pct > 0 && pct < 0.1 ? "< 0.1 %" : `${pct.toFixed(1)} %`;
}

function Hovering(own: {
  readonly inside: ReadonlySignal<boolean>;
  readonly cursor: ReadonlySignal<number | null>;
  readonly props: PartStackProps;
  readonly view: Viewport;
  readonly size: SizePx;
  readonly colours: readonly string[];
}) {
  const x = own.cursor.value;
  const { answer } = own.props;
  const column = x === null ? -1 : columnAt(answer, x);
  if (!own.inside.value || x === null || column < 0) return null;
  const { x0, x1 } = own.view;
  const px = ((x - x0) / (x1 - x0)) * own.size.widthPx;
  return (
    <PartTip
      answer={answer}
      colours={own.colours}
      column={column}
      at={{
        leftPx: GUTTER.left + px,
        topPx: GUTTER.top + 4,
        flip: px > own.size.widthPx / 2,
      }}
    />
  );
}
