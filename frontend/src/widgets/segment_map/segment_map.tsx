/**
 * Every segment of the allocator with its blocks, at one moment: a row each, drawn in a
 * worker. The page scrolls through them; only what is in sight is drawn.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { pixelOf } from "../../render/palette";
import { RasterSurface } from "../../render/surface";
import { ChartButton } from "../line_chart/chart_button";
import { useWidth } from "../line_chart/use_size";
import { devicePx, fitted, pixelRatio } from "../plot/canvas";
import { SegmentCard } from "./card";
import type { SegmentFill } from "./fills";
import {
  blocksOf,
  pieces,
  rowOfBlock,
  rowsBetween,
  type SegmentLayout,
} from "./layout";
import { paintOverlay } from "./overlay";
import { firstSegmentId, segmentQuads } from "./quads";
import "./segment_map.css";
import { blockWords, HEAD_PX, headWords, openedText, segmentKind } from "./words";

const LAYER = "blocks";
/** What is longer is cut until all is asked for: other things stand below the map. */
const MOST_PX = 900;
/** Turns of the wheel, with a modifier key, up to the next scale. */
const WHEEL_PX = 80;

export interface SegmentMapProps {
  readonly label: string;
  readonly answer: SegmentsResponse;
  readonly facts: Pick<HistoryFacts, "pools" | "streams">;
  readonly stacks: CallStacks | null;
  readonly layout: SegmentLayout;
  readonly fill: SegmentFill;
  /** The chosen block's life; null: none. */
  readonly life: number | null;
  /** Address of the chosen segment; null: none. */
  readonly segment: number | null;
  /** What keeps a segment, in words, by its address. */
  readonly pinned: ReadonlyMap<number, string>;
  /** Row of `SegmentBlocks`. */
  readonly onBlock: (block: number) => void;
  /** Row of `SegmentRows`. */
  readonly onSegment: (row: number) => void;
  /** Shows equal full segments one by one, from this row on, or folds them again. */
  readonly onFold: (row: number) => void;
  /** 1: fewer bytes to a line, -1: more. */
  readonly onZoom: (sign: 1 | -1) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** Told how to read the picture, for exports; null when it is gone. */
  readonly onReady: (shown: ShownMap | null) => void;
}

/** What is in sight, for a picture of it. */
export interface ShownMap {
  readonly cells: HTMLCanvasElement;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Room for the words of a segment, left of its blocks. */
  readonly headPx: number;
  /** First row in sight and the one after the last, with where the first begins. */
  readonly rows: readonly [number, number];
  readonly scrollPx: number;
}

/** What the pointer is on. */
export interface MapHover {
  readonly x: number;
  readonly y: number;
  readonly row: number;
  /** -1: the segment's blocks are not listed. */
  readonly block: number;
}

export function SegmentMap(props: SegmentMapProps) {
  const { answer, layout, theme, fill, stacks, byteUnit, life } = props;
  const box = useRef<HTMLDivElement>(null);
  const sight = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const surface = useRef<RasterSurface | null>(null);
  const turned = useRef(0);
  const [scrolled, setScrolled] = useState(0);
  const [all, setAll] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const hover = useSignal<MapHover | null>(null);
  const spoken = useSignal("");
  const helpId = useId();
  const fullPx = useWidth(box);
  const headPx = HEAD_PX;
  const widthPx = Math.max(0, fullPx - headPx - 16);
  const totalPx = layout.top.at(-1) ?? 0;
  const shownPx = all ? totalPx : Math.min(totalPx, MOST_PX);
  const heightPx = Math.min(shownPx, Math.max(window.innerHeight, 200));
  const scrollPx = Math.max(0, Math.min(scrolled, shownPx - heightPx));
  const quads = useMemo(
    () => segmentQuads(answer, layout, fill, theme),
    [answer, layout, fill, theme],
  );
  const selected = useMemo(
    () => (life === null ? -1 : answer.blocks.life.indexOf(life)),
    [answer, life],
  );

  useEffect(() => {
    const element = cells.current;
    if (element === null) return undefined;
    const made = new RasterSurface(element, {
      onPaint: (frame) => {
        setFailure(null);
        element.dataset["drawMs"] = frame.drawMs.toFixed(1);
      },
      onFailure: setFailure,
    });
    surface.current = made;
    return () => {
      made.dispose();
      surface.current = null;
    };
  }, []);
  useEffect(() => {
    // Whatever scrolls the page: the part in sight sticks to its top.
    const follow = (): void => {
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const own = sight.current?.getBoundingClientRect().top ?? 0;
      hover.value = null;
      setScrolled(own - top);
    };
    window.addEventListener("scroll", follow, { capture: true, passive: true });
    return () => window.removeEventListener("scroll", follow, { capture: true });
  }, []);
  useEffect(() => {
    const bg = pixelOf(tokens(theme).bg);
    surface.current?.setColours({ background: bg, cells: new Map(), accent: bg });
    surface.current?.setLayer(LAYER, 1, { kind: "quads", quads });
    surface.current?.refresh();
  }, [quads, theme]);
  useEffect(() => {
    if (widthPx < 2) return;
    surface.current?.show(
      { x0: 0, x1: 1, y0: scrollPx, y1: scrollPx + heightPx },
      devicePx({ widthPx, heightPx }),
    );
  }, [widthPx, heightPx, scrollPx, pixelRatio()]);

  const paint = useRef((): void => undefined);
  paint.current = (): void => {
    const context = widthPx < 2 ? null : fitted(over.current, widthPx, heightPx);
    if (context === null) return;
    const hovered = hover.peek()?.block ?? -1;
    const lit = hovered >= 0 ? hovered : selected;
    paintOverlay(context, {
      answer,
      layout,
      theme,
      widthPx,
      heightPx,
      scrollPx,
      hovered,
      selected,
      stack: lit < 0 ? null : (answer.blocks.stack[lit] ?? null),
      pinned: props.pinned,
    });
  };
  useEffect(() => paint.current());
  useEffect(
    () => hover.subscribe(() => window.requestAnimationFrame(paint.current)),
    [],
  );
  useEffect(() => {
    // What was pointed at may be gone at another moment.
    hover.value = null;
  }, [answer, layout]);
  useEffect(() => {
    // A block that a link names, or that was found elsewhere, comes into sight.
    reveal(selected);
  }, [selected >= 0, life]);

  const [first, end] = rowsBetween(layout, scrollPx, scrollPx + heightPx);
  const told = useRef(props.onReady);
  told.current = props.onReady;
  useEffect(() => {
    const element = cells.current;
    if (element === null) return;
    const rows = [first, end] as const;
    told.current({ cells: element, widthPx, heightPx, headPx, rows, scrollPx });
  });
  useEffect(() => () => told.current(null), []);

  function reveal(block: number): void {
    const row = rowOfBlock(answer, block);
    const [offset, size] = [
      answer.blocks.offset[block] ?? 0,
      answer.blocks.size[block] ?? 0,
    ];
    const [piece] = row < 0 ? [] : pieces(layout, row, offset, size);
    const top = box.current?.getBoundingClientRect().top;
    if (piece === undefined || top === undefined) return;
    if (piece.y1 > shownPx) setAll(true);
    const y = top + piece.y0;
    if (y > 0 && y < window.innerHeight - 100) return;
    const mark = document.createElement("span");
    mark.style.cssText = `position:absolute;top:${piece.y0}px`;
    box.current?.append(mark);
    mark.scrollIntoView({ block: "center" });
    mark.remove();
  }

  function hoverAt(event: MouseEvent): MapHover | null {
    const rect = cells.current?.getBoundingClientRect();
    if (rect === undefined) return null;
    const x = event.clientX - rect.left;
    const y = event.clientY - rect.top;
    if (x < 0 || y < 0 || x >= widthPx || y >= heightPx) return null;
    const ratio = pixelRatio();
    const pick = surface.current?.pick(x * ratio, y * ratio) ?? null;
    if (pick?.kind !== "quad") return null;
    const unlisted = pick.id - firstSegmentId(answer);
    const block = unlisted >= 0 ? -1 : pick.id;
    const row = unlisted >= 0 ? unlisted : rowOfBlock(answer, block);
    if (row < 0 || row >= answer.segments.address.length) return null;
    return { x: x + headPx, y: y + scrollPx, row, block };
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const at = hover.peek()?.block ?? selected;
    if (by !== 0) {
      const next = steppedBlock(answer, at, by, event.shiftKey);
      if (next >= 0) pointAt(next);
    } else if (event.key === "Enter" && at >= 0) props.onBlock(at);
    else if (event.key === "+" || event.key === "=") props.onZoom(1);
    else if (event.key === "-") props.onZoom(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function onWheel(event: WheelEvent): void {
    // Without a key the wheel is the page's.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    turned.current += event.deltaY;
    if (Math.abs(turned.current) < WHEEL_PX) return;
    props.onZoom(turned.current < 0 ? 1 : -1);
    turned.current = 0;
  }

  function pointAt(block: number): void {
    const row = rowOfBlock(answer, block);
    reveal(block);
    hover.value = { x: headPx, y: (layout.top[row] ?? 0) + 30, row, block };
    spoken.value = blockWords(answer, block, stacks, byteUnit);
  }

  const summary = `${props.label}: ${formatInteger(answer.numSegments)} segments, ${formatBytes(answer.reservedBytes, byteUnit)} reserved, ${formatBytes(answer.allocatedBytes, byteUnit)} of it allocated.`;
  return (
    <div ref={box} class="segment-map">
      <div
        class="segment-rows"
        style={{ height: `${shownPx}px` }}
        tabIndex={0}
        role="application"
        aria-label={props.label}
        aria-describedby={helpId}
        onKeyDown={onKeyDown}
        onWheel={onWheel}
        onPointerMove={(event) => {
          hover.value = hoverAt(event);
        }}
        onPointerLeave={() => {
          hover.value = null;
        }}
        onClick={(event) => {
          const at = hoverAt(event);
          if (at === null) return;
          if (at.block >= 0) props.onBlock(at.block);
          else props.onSegment(at.row);
        }}
      >
        <div ref={sight} class="segment-sight" style={{ height: `${heightPx}px` }}>
          <canvas
            ref={cells}
            style={{
              left: `${headPx}px`,
              width: `${widthPx}px`,
              height: `${heightPx}px`,
            }}
          />
          <canvas
            ref={over}
            style={{
              left: `${headPx}px`,
              width: `${widthPx}px`,
              height: `${heightPx}px`,
            }}
          />
          {Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i)
            .filter((row) => layout.numFolded[row] !== 0)
            .map((row) => (
              <Head
                key={row}
                row={row}
                topPx={(layout.top[row] ?? 0) - scrollPx}
                {...props}
              />
            ))}
        </div>
      </div>
      {totalPx > MOST_PX && (
        <button type="button" class="text-button" onClick={() => setAll(!all)}>
          {all ? "Show the first segments only" : "Show all segments"}
        </button>
      )}
      {failure !== null && (
        <p class="segment-failure" role="alert">
          The map could not be drawn: {failure}. Reload the page.
        </p>
      )}
      <SegmentCard
        hover={hover}
        {...props}
        widthPx={widthPx + headPx}
        heightPx={shownPx}
      />
      <p id={helpId} class="off-screen">
        {summary} Up and down move from block to block, with Shift from segment to
        segment; Enter opens the block; plus and minus zoom.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

/** The block before or after one; with `far` the first of the next segment. */
export function steppedBlock(
  answer: Pick<SegmentsResponse, "segments" | "blocks">,
  from: number,
  by: 1 | -1,
  far: boolean,
): number {
  const num = answer.blocks.state.length;
  if (num === 0) return -1;
  if (from < 0) return by > 0 ? 0 : num - 1;
  if (!far) return Math.min(Math.max(from + by, 0), num - 1);
  for (
    let row = rowOfBlock(answer, from) + by;
    row >= 0 && row < answer.segments.address.length;
    row += by
  ) {
    const [first, end] = blocksOf(answer, row);
    if (end > first) return first;
  }
  return from;
}

function Head(
  props: SegmentMapProps & { readonly row: number; readonly topPx: number },
) {
  const { row, topPx, answer, facts, byteUnit, segment, layout } = props;
  const { segments } = answer;
  const address = segments.address[row] ?? 0;
  const total = segments.totalBytes[row] ?? 0;
  const free = segments.freeBytes[row] ?? 0;
  const folded = layout.numFolded[row] ?? 1;
  const run = layout.runs[row] ?? 1;
  const kind = segmentKind(answer, row, facts);
  const words = headWords(answer, row, folded, facts, byteUnit);
  const pins = props.pinned.get(address);
  const title =
    folded > 1
      ? [`${formatInteger(folded)} segments of ${formatBytesExact(total)}, ${kind}`]
      : [
          `${words.address}, ${formatBytesExact(total)}, ${kind}`,
          `${formatBytesExact(free)} free, the largest block ${formatBytesExact(segments.largestFreeBytes[row] ?? 0)}`,
          `Came with ${openedText(segments.opened[row] ?? -1)}`,
          ...(pins === undefined ? [] : [pins]),
        ];
  return (
    <div
      class={address === segment ? "segment-head is-chosen" : "segment-head"}
      style={{ top: `${topPx}px`, width: `${HEAD_PX - 12}px` }}
    >
      {run > 1 && (
        <ChartButton
          label={folded > 1 ? "Show them one by one" : "Fold equal full segments"}
          icon={folded > 1 ? "right" : "down"}
          onClick={() => props.onFold(row)}
        />
      )}
      <button
        type="button"
        tabIndex={-1}
        title={title.join("\n")}
        onClick={(event) => {
          event.stopPropagation();
          if (folded > 1) props.onFold(row);
          else props.onSegment(row);
        }}
      >
        <span>
          <b>{words.size}</b> <code>{words.address}</code>
          {words.stream !== "" && <span class="quiet"> · {words.stream}</span>}
        </span>
        <span class="quiet">{words.below}</span>
      </button>
    </div>
  );
}
