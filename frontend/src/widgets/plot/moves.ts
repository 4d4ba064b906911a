import type { Signal } from "@preact/signals";
import type { Command } from "../../base/commands";
import { highestColumn, localPeaks, nextPeak } from "../../model/lines/peaks";
import { panStep, viewAfterKey, zoomStep, type PointPx } from "../../render/gestures";
import { pxToX, pxToY, xToPx, yToPx, type Viewport } from "../../render/viewport";
import type { ExportShell } from "../export/export_menu";
import { rangeAround, type XRange } from "./range";
import type { PlotSight, Reader, Rows } from "./reader";
import { spokenWords } from "./reading";
import type { Picture } from "./axes";

export interface PlotPage {
  readonly view: ExportShell;
  /** Group of its keys in help; absent: another chart has the page's keys. */
  readonly group?: string;
}

/** What of a plot decides how its keys and gestures move it. */
export interface MovesProps {
  readonly picture: Picture;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** Rows that zoom and pan as x does. */
  readonly rows?: Rows;
  readonly reader: Reader;
  /** F was pressed, or a double click. */
  readonly onFit?: () => void;
  readonly page?: PlotPage | undefined;
}

interface PlotState {
  readonly cursor: Signal<number | null>;
  /** Px of the plot; y is NaN where keys moved the cursor. */
  readonly hover: Signal<PointPx | null>;
  readonly spoken: Signal<string>;
  /** `performance.now()` of its last own gesture. */
  readonly gestured: { current: number };
}

export function movesOf(
  props: MovesProps,
  seen: PlotSight,
  all: XRange,
  { cursor, hover, spoken, gestured }: PlotState,
) {
  const { rows, reader, range, onRange, page } = props;
  const { size } = seen;
  const axes = rows === undefined ? "x" : "both";
  const [first, end] = rows?.all ?? [0, 1];
  const view = rows === undefined ? { ...seen.view, y0: 0, y1: 1 } : seen.view;
  const limits = {
    world: { x0: all.low, x1: all.high, y0: first, y1: end },
    leastX: Math.min(props.picture.axis.least, all.high - all.low),
    leastY: rows?.least ?? 1,
  };
  const middle = (view.x0 + view.x1) / 2;
  const xPx = (x: number): number => xToPx(view, size.widthPx, x);
  const snapped = (point: PointPx) => reader.snap(pxToX(view, size.widthPx, point.x));

  function setView(next: Viewport): void {
    gestured.current = performance.now();
    rows?.onRows([next.y0, next.y1]);
    const isAll = next.x0 <= all.low && next.x1 >= all.high;
    onRange(isAll ? null : { low: next.x0, high: next.x1 });
  }
  function fit(): void {
    gestured.current = performance.now();
    props.onFit?.();
    rows?.onRows(rows.all);
    onRange(null);
  }
  const zoom = (sign: number): void => setView(zoomStep(view, limits, sign, axes));
  const pan = (sign: number): void => setView(panStep(view, limits, sign));

  /** Sets the cursor as the pointer would and announces the reading. */
  function goTo(x: number | null, y = NaN): boolean {
    if (x === null || !Number.isFinite(x)) return false;
    const next = rangeAround(range, x, all);
    if (next !== range) onRange(next);
    const point = { x: xPx(x), y };
    cursor.value = x;
    hover.value = point;
    const reading = reader.read(x, point, seen);
    if (reading !== null) spoken.value = spokenWords(reading);
    return true;
  }
  /** Px of the middle of the row `count` below the pointer's. */
  function rowPx(count: number): number {
    if (rows === undefined) return NaN;
    const y = hover.peek()?.y ?? NaN;
    const from = pxToY(view, size.heightPx, Number.isNaN(y) ? size.heightPx / 2 : y);
    const each = Math.max(1, Math.round((view.y1 - view.y0) / size.heightPx));
    const row = Math.min(Math.max(Math.floor(from) + count * each, 0), end - 1);
    return yToPx(view, size.heightPx, row + 0.5);
  }
  function toStop(stops: readonly number[], side: -1 | 1): boolean {
    const from = cursor.peek() ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    return goTo(nextPeak(stops, from, side));
  }
  const step = (count: number): boolean =>
    goTo(reader.step(cursor.peek() ?? middle, count), rowPx(0));
  function down(count: number): boolean {
    if (rows !== undefined) return goTo(cursor.peek() ?? middle, rowPx(count));
    return toStop(reader.stops ?? [], count > 0 ? 1 : -1);
  }
  function pick(x: number | null, point: PointPx | null): void {
    if (x !== null) reader.pick?.(x, point ?? { x: xPx(x), y: NaN }, seen);
  }
  function leave(): boolean {
    const had = cursor.peek() !== null;
    cursor.value = hover.value = null;
    return had;
  }
  function toPeak(): boolean {
    const columns = reader.columns?.();
    const drawn = columns?.x[highestColumn(columns.y)];
    return goTo(reader.peak?.() ?? drawn ?? null);
  }
  function toNextPeak(side: -1 | 1): boolean {
    const columns = reader.columns?.();
    return columns !== undefined && toStop(localPeaks(columns), side);
  }

  /** Keys of the plot and commands of its page; `false`: nothing to do. */
  const actions = [
    ["range.fit", "Show everything", "f", fit],
    ["range.in", "Zoom in", "w", () => zoom(-1)],
    ["range.out", "Zoom out", "s", () => zoom(1)],
    ["range.left", "Move left", "a", () => pan(-1)],
    ["range.right", "Move right", "d", () => pan(1)],
    ["peak.highest", "Jump to the peak", "p", toPeak],
    ["peak.before", "Previous peak", "[", () => toNextPeak(-1)],
    ["peak.after", "Next peak", "]", () => toNextPeak(1)],
  ] as const;

  return {
    view,
    limits,
    setView,
    zoom,
    fit,
    commands: (): readonly Command[] =>
      page?.group === undefined
        ? []
        : actions.map(([id, label, key, act]) => ({
            id,
            label,
            key,
            group: page.group ?? "",
            run: () => {
              if (act() === false) page.view.say("No peak found");
            },
          })),
    hoverAt: (point: PointPx | null): void => {
      const isIn =
        point !== null && point.x >= 0 && point.x < size.widthPx && point.y >= 0;
      const isOver = isIn && (rows === undefined || point.y < size.heightPx);
      cursor.value = isOver ? snapped(point) : null;
      hover.value = cursor.value === null ? null : point;
    },
    clickAt: (point: PointPx): void => pick(snapped(point), point),
    /** true: the key was handled. */
    onKey: ({ key, shiftKey }: KeyboardEvent): boolean => {
      const far = shiftKey ? 10 : 1;
      const keys: Readonly<Record<string, () => unknown>> = {
        ...Object.fromEntries(actions.map(([, , named, act]) => [named, act])),
        ArrowRight: () => step(far),
        ArrowLeft: () => step(-far),
        ArrowDown: () => down(far),
        ArrowUp: () => down(-far),
        Enter: () => pick(cursor.peek(), hover.peek()),
        Escape: leave,
      };
      const act = keys[key.length === 1 ? key.toLowerCase() : key];
      if (act !== undefined) return act() !== false;
      const next = viewAfterKey(key, view, limits, axes);
      if (next !== null) setView(next);
      return next !== null;
    },
  };
}
