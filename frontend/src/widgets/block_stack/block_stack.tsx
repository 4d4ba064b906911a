/**
 * A click pins a block and a moment; Shift and drag choose a range. `widgets/stack` draws a few
 * series as polygons; here are millions of blocks, of which a raster of their lives is sent.
 */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted, formatBytes, formatInteger } from "../../base/bytes";
import { useWidgetFlag } from "../../base/widget_words";
import { figureTitle, type Origin } from "../../model/words/origin";
import { viewAfterKey, zoomStep } from "../../render/gestures";
import type { Viewport } from "../../render/viewport";
import type { ExportShell } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { HistoryMinimap } from "../minimap/history";
import { useWidth } from "../plot/canvas";
import { ChartFrame, DrawingFailed } from "../plot/chart_frame";
import { spokenWords } from "../plot/reading";
import { atMoment, momentText } from "./axis";
import { BlockStage, worldOf, type BlockEvents } from "./stage";
import { blockFigure, blockTable } from "./figure";
import { BlockCard, BlockLegend, readingOf } from "./legend";
import { GUTTER, totalHeight } from "./paint/paint";
import type { BlockPicture, BlockHover } from "./picture";
import type { BlockFacts } from "./tile";
import "./block_stack.css";

/** Owns the view, so that a gesture renders nothing. */
export function useBlockStage(of: BlockPicture): BlockStage {
  return useMemo(() => new BlockStage(of), []);
}

interface BlockStackProps extends BlockEvents {
  readonly of: BlockPicture;
  readonly stage: BlockStage;
  readonly label: string;
  readonly title?: ComponentChildren;
  readonly bar?: ComponentChildren;
  readonly subject: string;
  readonly origin: Origin;
  readonly about: Readonly<Record<string, unknown>>;
  readonly shell: ExportShell;
  readonly onOnly: (key: string) => void;
  readonly heightPx: number;
  readonly loading: boolean;
  /** Moment of the legend without a cursor. */
  readonly anchor: number;
  /** Exact bytes by group key at `anchor`; null: read from the tile. */
  readonly exact?: ReadonlyMap<string, number> | null;
}

export function BlockStack(props: BlockStackProps) {
  const { of, stage, label, heightPx } = props;
  const { tiles } = of;
  const box = useRef<HTMLDivElement>(null);
  const [asTable, setAsTable] = useWidgetFlag("as_table", "blocks");
  const [settled, setSettled] = useState<Viewport | null>(null);
  const spoken = useSignal("");
  const widthPx = useWidth(box);
  const [whole] = tiles;
  const finest = tiles.at(-1);
  const seen = settled ?? worldOf(of);
  stage.events = {
    ...props,
    onView: (now, rests) => {
      if (rests) setSettled(now.view);
      props.onView(now, rests);
    },
  };
  useLayoutEffect(() => stage.attach(), [stage, asTable]);
  useLayoutEffect(() => stage.update(of), [stage, of]);
  const plotPx = Math.max(1, widthPx - GUTTER.left - GUTTER.right);
  useLayoutEffect(() => {
    if (widthPx > 0) stage.resize({ widthPx: plotPx, heightPx });
  }, [stage, widthPx, plotPx, heightPx]);

  function onKey({ key, shiftKey }: KeyboardEvent): boolean {
    const hover = stage.hovered.peek();
    const move = KEYS[key];
    const view = viewAfterKey(key, stage.view, stage.limits, "x");
    if (move !== undefined) {
      const moved = move(stage, shiftKey ? 10 : 1);
      if (moved !== null) spoken.value = spokenOf(of, moved);
    } else if (view !== null) stage.setView(view);
    else if (key.toLowerCase() === "f") stage.fit();
    else if (key === "Enter" && hover !== null) props.onPin(hover);
    else return false;
    return true;
  }

  const table = () =>
    finest === undefined ? { numRows: 0, columns: [] } : blockTable(finest, seen, of);
  const source: ExportSource = {
    origin: props.origin,
    name: label,
    table,
    about: () => props.about,
    figure:
      finest === undefined
        ? null
        : () =>
            blockFigure(
              figureTitle(label, props.origin),
              stage.scene(),
              finest,
              stage.cells.current?.toDataURL("image/png") ?? "",
            ),
  };
  const cellsBox = {
    left: `${GUTTER.left}px`,
    top: `${GUTTER.top}px`,
    width: `${plotPx}px`,
    height: `${heightPx}px`,
  };
  return (
    <div class="block-stack" aria-busy={props.loading}>
      <ChartFrame
        {...props}
        source={source}
        table={table}
        asTable={asTable}
        onKey={onKey}
        box={box}
        spoken={spoken}
        kind="block"
        drawing="Picture"
        zoom={(sign) => stage.setView(zoomStep(stage.view, stage.limits, sign, "x"))}
        fit={() => stage.fit()}
        onAsTable={setAsTable}
        heightPx={totalHeight({ widthPx: plotPx, heightPx }, of.marks)}
        plotRef={stage.plot}
        plot={
          <>
            <canvas ref={stage.under} />
            <canvas ref={stage.cells} class="block-cells" style={cellsBox} />
            <canvas ref={stage.over} />
            <canvas ref={stage.line} />
            <BlockCard stage={stage} of={of} />
            <DrawingFailed drawing="The picture" failure={stage.failure} />
          </>
        }
        legend={
          <>
            {whole !== undefined && (
              <BlockLegend
                stage={stage}
                of={of}
                whole={whole}
                anchor={props.anchor}
                exact={props.exact ?? null}
                onOnly={props.onOnly}
              />
            )}
            <HistoryMinimap
              of={of}
              seen={seen}
              onRange={(range) => {
                const { low, high } = range ?? of.axis;
                stage.setView({ ...stage.view, x0: low, x1: high });
              }}
            />
          </>
        }
        help={`${summary(of, label)} Left and right go from event to event, up and down
          from block to block, Enter pins the block at the cursor, W and S zoom, A and D
          pan, P goes to the peak, F shows everything.`}
      />
    </div>
  );
}

function summary({ device, byteUnit }: BlockPicture, label: string): string {
  const peak = device.peaks.find(({ level }) => level === "active");
  const highest =
    peak === undefined
      ? ""
      : ` The peak is ${formatBytes(peak.bytes, byteUnit)} ${atMoment(peak.moment)}.`;
  return `${label}: ${counted(device.numAllocations, "allocation")} over ${counted(device.numEvents, "event")}.${highest}`;
}

/** By events where each has its own column, else by columns. */
export function stepEvents(stage: BlockStage, by: number): BlockHover | null {
  const { tile, view } = stage;
  const { axis } = stage.of;
  if (tile === null || tile.numColumns === 0) return null;
  const from = stage.hovered.peek();
  const x = from?.x ?? (view.x0 + view.x1) / 2;
  const column = tile.columnAt(Math.min(Math.max(x, tile.low), tile.high));
  const next = Math.min(Math.max(column + by, 0), tile.numColumns - 1);
  const middle = tile.middleOf(next);
  if (middle < view.x0 || middle > view.x1) {
    stage.reveal(tile.answer.columns.moment[next] ?? -1);
  }
  const run = from === null ? -1 : runOf(from);
  const y = from === null || run < 0 ? null : from.tile.middleOfRun(run, from.column);
  return stage.moveTo(axis.inside(middle), y);
}

/** by > 0: up. */
function stepBlocks(stage: BlockStage, by: number): BlockHover | null {
  const from = stage.hovered.peek() ?? stepEvents(stage, 0);
  if (from === null) return null;
  const { tile, column } = from;
  const runs = tile.runsAt(column);
  const index = runs.indexOf(runOf(from));
  const start = index >= 0 ? index : by > 0 ? -1 : runs.length;
  const run = runs[Math.min(Math.max(start + by, 0), runs.length - 1)];
  if (run === undefined) return from;
  return stage.moveTo(from.x, tile.middleOfRun(run, column));
}

/** -1: none. */
function runOf({ tile, column, block }: BlockHover): number {
  return tile.runsAt(column).find((run) => tile.runs.slot[run] === block?.slot) ?? -1;
}

const KEYS: Readonly<
  Record<string, (of: BlockStage, by: number) => BlockHover | null>
> = {
  ArrowRight: stepEvents,
  ArrowLeft: (of, by) => stepEvents(of, -by),
  ArrowUp: stepBlocks,
  ArrowDown: (of, by) => stepBlocks(of, -by),
};

function spokenOf(of: BlockPicture, hover: BlockHover): string {
  const { tile, column, block, moment } = hover;
  const total = tile.answer.columns.active[column] ?? NaN;
  const reading = readingOf(hover, of);
  const parts = [momentText(moment), `${formatBytes(total, of.byteUnit)} live`];
  if (reading !== null) parts.push(spokenWords(reading));
  if (block !== null) parts.push(`freed: ${freedText(block, of.device.numEvents)}`);
  return parts.join(", ");
}

/** A free is requested first; it completes when all streams have caught up. */
export function freedText(
  { born, freed, gone }: Pick<BlockFacts, "born" | "freed" | "gone">,
  numEvents: number,
): string {
  if (gone >= numEvents) {
    return freed >= numEvents
      ? "still live at the end"
      : "free requested, not completed by the end";
  }
  const lasted = born < 0 ? "" : `, after ${counted(gone - born, "event")}`;
  const waited =
    freed >= 0 && freed < gone ? ` (requested at ${formatInteger(freed)})` : "";
  return `${momentText(gone)}${lasted}${waited}`;
}
