/** A click pins a block and a moment; Shift and drag choose a range. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatInteger } from "../../base/bytes";
import { figureTitle, type Origin } from "../../model/words/origin";
import { zoomStep } from "../../render/gestures";
import type { Viewport } from "../../render/viewport";
import type { ExportShell } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { HistoryMinimap } from "../minimap/history";
import { useWidth } from "../plot/canvas";
import { ChartFrame, DrawingFailed } from "../plot/chart_frame";
import { atMoment, momentText } from "./axis";
import {
  BlockController,
  worldOf,
  type BlockCanvases,
  type BlockEvents,
} from "./controller";
import { blockFigure, blockTable } from "./figure";
import { BlockCard, BlockLegend } from "./legend";
import { groupLabel } from "./paint/colours";
import { GUTTER, totalHeight } from "./paint/paint";
import type { BlockPicture, BlockHover } from "./picture";
import type { BlockFacts } from "./tile";
import "./block_stack.css";

interface BlockStackProps extends BlockEvents {
  readonly of: BlockPicture;
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
  readonly onReady: (controller: BlockController | null) => void;
}

export function BlockStack(props: BlockStackProps) {
  const { of, label, heightPx } = props;
  const { tiles } = of;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const [controller, setController] = useState<BlockController | null>(null);
  const [asTable, setAsTable] = useState(false);
  const [settled, setSettled] = useState<Viewport | null>(null);
  const spoken = useSignal("");
  const widthPx = useWidth(box);
  const [whole] = tiles;
  const finest = tiles.at(-1);
  const seen = settled ?? worldOf(of);
  const latest = useRef(props);
  latest.current = props;

  useLayoutEffect(() => {
    const target = plot.current;
    if (target === null) return undefined;
    const [under, cells, over, line] = target.querySelectorAll("canvas");
    const made = new BlockController(
      target,
      { under, cells, over, line } as BlockCanvases,
      latest.current.of,
      () => ({
        ...latest.current,
        onView: (view, rests) => {
          if (rests) setSettled(view.view);
          latest.current.onView(view, rests);
        },
      }),
    );
    setController(made);
    latest.current.onReady(made);
    return () => {
      made.dispose();
      setController(null);
      latest.current.onReady(null);
    };
  }, [asTable]);
  useLayoutEffect(() => controller?.update(of), [controller, of]);
  const plotPx = Math.max(1, widthPx - GUTTER.left - GUTTER.right);
  useLayoutEffect(() => {
    if (widthPx > 0) controller?.resize({ widthPx: plotPx, heightPx });
  }, [controller, widthPx, plotPx, heightPx]);

  function onKey({ key, shiftKey }: KeyboardEvent): boolean {
    if (controller === null) return false;
    const hover = controller.hovered.peek();
    const move = KEYS[key];
    if (key === "Enter" && hover !== null) props.onPin(hover);
    if (move === undefined) return key === "Enter" && hover !== null;
    const at = move(controller, shiftKey ? 10 : 1);
    if (at !== null) spoken.value = spokenOf(of, at);
    return true;
  }

  const table = () =>
    finest === undefined ? { numRows: 0, columns: [] } : blockTable(finest, seen, of);
  const source: ExportSource = {
    ...{ origin: props.origin, name: label, table },
    about: () => props.about,
    figure:
      controller === null || finest === undefined
        ? null
        : () =>
            blockFigure(
              figureTitle(label, props.origin),
              controller.scene(),
              finest,
              controller.cells().toDataURL("image/png"),
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
        {...{ source, table, asTable, onKey, box, spoken }}
        kind="block"
        what="Picture"
        zoom={(sign) => {
          if (controller === null) return;
          controller.setView(zoomStep(controller.view, controller.limits, sign, "x"));
        }}
        fit={() => controller?.fit()}
        onAsTable={setAsTable}
        heightPx={totalHeight({ widthPx: plotPx, heightPx }, of.marks)}
        plotRef={plot}
        plot={
          <>
            <canvas />
            <canvas class="block-cells" style={cellsBox} />
            <canvas />
            <canvas />
            {controller !== null && (
              <>
                <BlockCard controller={controller} of={of} />
                <DrawingFailed what="The picture" failure={controller.failure} />
              </>
            )}
          </>
        }
        legend={
          <>
            {whole !== undefined && (
              <BlockLegend
                controller={controller}
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
                if (controller === null) return;
                controller.setView({ ...controller.view, x0: low, x1: high });
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
  return `${label}: ${formatInteger(device.numAllocations)} allocations over ${formatInteger(device.numEvents)} events.${highest}`;
}

/** By events where each has its own column, else by columns. */
export function stepEvents(controller: BlockController, by: number): BlockHover | null {
  const { tile, view, axis } = controller;
  if (tile === null || tile.numColumns === 0) return null;
  const from = controller.hovered.peek();
  const x = from?.x ?? (view.x0 + view.x1) / 2;
  const column = tile.columnAt(Math.min(Math.max(x, tile.low), tile.high));
  const next = Math.min(Math.max(column + by, 0), tile.numColumns - 1);
  const at = tile.middleOf(next);
  if (at < view.x0 || at > view.x1) {
    controller.reveal(tile.answer.columns.moment[next] ?? -1);
  }
  const run = from === null ? -1 : runOf(from);
  const y = from === null || run < 0 ? null : from.tile.middleOfRun(run, from.column);
  return controller.moveTo(Math.min(Math.max(at, axis.low), axis.high), y);
}

/** by > 0: up. */
function stepBlocks(controller: BlockController, by: number): BlockHover | null {
  const from = controller.hovered.peek() ?? stepEvents(controller, 0);
  if (from === null) return null;
  const { tile, column } = from;
  const runs = tile.runsAt(column);
  const at = runs.indexOf(runOf(from));
  const start = at >= 0 ? at : by > 0 ? -1 : runs.length;
  const run = runs[Math.min(Math.max(start + by, 0), runs.length - 1)];
  if (run === undefined) return from;
  return controller.moveTo(from.x, tile.middleOfRun(run, column));
}

/** -1: none. */
function runOf({ tile, column, block }: BlockHover): number {
  return tile.runsAt(column).find((run) => tile.runs.slot[run] === block?.slot) ?? -1;
}

export const KEYS: Readonly<
  Record<string, (of: BlockController, by: number) => BlockHover | null>
> = {
  ArrowRight: stepEvents,
  ArrowLeft: (of, by) => stepEvents(of, -by),
  ArrowUp: stepBlocks,
  ArrowDown: (of, by) => stepBlocks(of, -by),
};

export function spokenOf(
  { stacks, byteUnit, device }: BlockPicture,
  at: BlockHover,
): string {
  const { tile, column, block } = at;
  const total = tile.answer.columns.active[column] ?? NaN;
  const words = [momentText(at.moment), `${formatBytes(total, byteUnit)} live`];
  if (block !== null) {
    words.push(`block of ${formatBytes(block.size, byteUnit)}`);
    const group = tile.answer.groups[block.group];
    if (group !== undefined) words.push(groupLabel(group));
    if (stacks !== null) words.push(stacks.stackLabel(block.stack));
    words.push(`freed: ${freedText(block, device.numEvents)}`);
  }
  return words.join(", ");
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
  const lasted = born < 0 ? "" : `, after ${formatInteger(gone - born)} events`;
  const waited =
    freed >= 0 && freed < gone ? ` (requested at ${formatInteger(freed)})` : "";
  return `${momentText(gone)}${lasted}${waited}`;
}
